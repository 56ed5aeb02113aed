package authtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// refusal is a credential that must be refused.
type refusal struct {
	Credential
	what string // for reports
}

// refusals returns credentials to refuse, for each reason. Each secret occurs with several ids.
func refusals(h Harness) (all []refusal) {
	for i, c := range h.SignsIn {
		ids := []refusal{
			{Credential{ID: unknownIDs(h, c.ID)[0].text}, "an unknown id"},
			{c, fmt.Sprintf("the id of credential %d", i)},
		}
		next := (i + 1) % len(h.SignsIn)
		if h.SignsIn[next].ID != c.ID {
			ids = append(ids, refusal{h.SignsIn[next], fmt.Sprintf("the id of credential %d", next)})
		}
		for _, near := range append(slices.Clip(wrongSecrets(h, c)[:2]), nearMiss{c.Secret, "unchanged"}, nearMiss{c.Secret + "x", "longer"}) {
			for _, r := range ids {
				r.Secret = near.text
				if !isKnown(h, r.Credential) {
					r.what += fmt.Sprintf(" with the secret of credential %d (%s)", i, near.how)
					all = append(all, r)
				}
			}
		}
	}
	for i, c := range h.Refused {
		of := fmt.Sprintf("credential %d of Harness.Refused", i)
		all = append(all, refusal{c, of}, refusal{Credential{ID: unknownIDs(h, c.ID)[0].text, Secret: c.Secret}, "an unknown id with the secret of " + of})
	}
	return all
}

// costsTheSame compares refusals of secrets with the same length. A verifier can take longer to
// hash a long secret, or refuse it without hashing: that doesn't tell which clients exist.
func costsTheSame(ctx context.Context, h Harness) error {
	if h.Work == nil {
		return fmt.Errorf("%w: Harness.Work is nil: that all refusals cost the same is not tested", ErrAbsent)
	}
	type measured struct {
		what string
		cost int64
	}
	first := make(map[int]measured) // by the length of the secret
	counts := false
	for _, r := range refusals(h) {
		before := h.Work()
		if err := refuses(ctx, h, r.Credential); err != nil {
			return fmt.Errorf("%s: %w", r.what, err)
		}
		cost := h.Work() - before
		counts = counts || cost > 0
		same, found := first[len(r.Secret)]
		if !found {
			first[len(r.Secret)] = measured{r.what, cost}
		} else if cost != same.cost {
			return fmt.Errorf("refusing %s costs %d, but refusing %s costs %d", r.what, cost, same.what, same.cost)
		}
	}
	if !counts {
		return errors.New("refusals cost nothing: Work does not count")
	}
	return nil
}
