package authtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"example.com/go-webhookcfg/webhookcfg"
)

func signsInOwner(ctx context.Context, h Harness) error {
	for i, c := range h.SignsIn {
		if err := accepts(ctx, h, c); err != nil {
			return fmt.Errorf("credential %d: %w", i, err)
		}
	}
	return nil
}

func refusesWrongSecrets(ctx context.Context, h Harness) error {
	for i, c := range h.SignsIn {
		for _, secret := range wrongSecrets(h, c) {
			if err := refuses(ctx, h, Credential{ID: c.ID, Secret: secret}); err != nil {
				return fmt.Errorf("credential %d with a wrong secret of %d bytes, the right one has %d: %w", i, len(secret), len(c.Secret), err)
			}
		}
	}
	return nil
}

func refusesUnknownClients(ctx context.Context, h Harness) error {
	for i, c := range h.SignsIn {
		for _, id := range unknownIDs(h, c.ID) {
			if err := refuses(ctx, h, Credential{ID: id, Secret: c.Secret}); err != nil {
				return fmt.Errorf("credential %d with the unknown id %q: %w", i, id, err)
			}
		}
	}
	return nil
}

func refusesDisabledAndRetired(ctx context.Context, h Harness) error {
	for i, c := range h.Refused {
		if err := refuses(ctx, h, c); err != nil {
			return fmt.Errorf("credential %d of Harness.Refused: %w", i, err)
		}
	}
	return nil
}

func keepsClientsApart(ctx context.Context, h Harness) error {
	for i, a := range h.SignsIn {
		for j, b := range h.SignsIn {
			crossed := Credential{ID: a.ID, Secret: b.Secret}
			if isKnown(h, crossed) {
				continue
			}
			if err := refuses(ctx, h, crossed); err != nil {
				return fmt.Errorf("the id of credential %d with the secret of %d: %w", i, j, err)
			}
		}
	}
	return nil
}

func costsTheSame(ctx context.Context, h Harness) error {
	if h.Work == nil {
		return nil
	}
	var first int64
	for i, c := range refusals(h) {
		before := h.Work()
		if err := refuses(ctx, h, c); err != nil {
			return err
		}
		cost := h.Work() - before
		if i == 0 {
			first = cost
		}
		if cost != first {
			return fmt.Errorf("refusal %d cost %d, the first one %d", i, cost, first)
		}
	}
	if first == 0 {
		return errors.New("refusals cost nothing: Work does not count")
	}
	return nil
}

func containsNoSecret(ctx context.Context, h Harness) error {
	const marker = "Xq7-marker-Zk2"
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for _, ctx := range []context.Context{ctx, ended} {
		for _, id := range []string{h.SignsIn[0].ID, unknownIDs(h, h.SignsIn[0].ID)[0]} {
			_, err := h.Verifier.Verify(ctx, id, marker)
			if err != nil && strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), marker) {
				return errors.New("error contains the presented secret")
			}
		}
	}
	return nil
}

func endedContext(ctx context.Context, h Harness) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for i, c := range h.SignsIn {
		client, err := h.Verifier.Verify(ended, c.ID, c.Secret)
		switch {
		case errors.Is(err, webhookcfg.ErrInvalidCredentials):
			return fmt.Errorf("credential %d: valid, but refused because the context has ended", i)
		case err == nil && client.ID != c.Owner:
			return fmt.Errorf("credential %d: signed in another client after the context had ended", i)
		}
	}
	for i, c := range refusals(h) {
		if _, err := h.Verifier.Verify(ended, c.ID, c.Secret); err == nil {
			return fmt.Errorf("refusal %d: signed in after the context had ended", i)
		}
	}
	return nil
}

func concurrentUse(ctx context.Context, h Harness) error {
	const rounds = 4
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		all   []error
	)
	run := func(check func(context.Context, Harness, Credential) error, c Credential) {
		group.Go(func() {
			err := check(ctx, h, c)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, err)
		})
	}
	for range rounds {
		for _, c := range h.SignsIn {
			run(accepts, c)
		}
		for _, c := range refusals(h) {
			run(refuses, c)
		}
	}
	group.Wait()
	return errors.Join(all...)
}

// accepts returns nil if the credential signs in its owner.
func accepts(ctx context.Context, h Harness, c Credential) error {
	client, err := h.Verifier.Verify(ctx, c.ID, c.Secret)
	if err != nil {
		return fmt.Errorf("not signed in: %T", err)
	}
	if client.ID != c.Owner {
		return fmt.Errorf("signed in %q, want %q", client.ID, c.Owner)
	}
	return nil
}

// refuses returns nil if the credential is refused as invalid.
func refuses(ctx context.Context, h Harness, c Credential) error {
	client, err := h.Verifier.Verify(ctx, c.ID, c.Secret)
	switch {
	case err == nil:
		return errors.New("signed in")
	case !errors.Is(err, webhookcfg.ErrInvalidCredentials):
		return fmt.Errorf("error of type %T does not wrap ErrInvalidCredentials", err)
	case client != webhookcfg.Client{}:
		return errors.New("refused, but returned a client")
	}
	return nil
}

// refusals returns credentials to refuse, at least one for each reason.
func refusals(h Harness) []Credential {
	var all []Credential
	for _, c := range h.SignsIn {
		all = append(all,
			Credential{ID: unknownIDs(h, c.ID)[0], Secret: c.Secret},
			Credential{ID: c.ID, Secret: wrongSecrets(h, c)[0]})
	}
	return append(all, h.Refused...)
}

// wrongSecrets returns near misses of a credential's secret.
func wrongSecrets(h Harness, c Credential) []string {
	runes := []rune(c.Secret)
	near := []string{
		c.Secret + "x",
		"x" + c.Secret,
		c.Secret + c.Secret,
		strings.Repeat("x", 1000),
		string(runes[1:]),
		string(runes[:len(runes)-1]),
		swapCase(c.Secret),
		c.ID,
	}
	return slices.DeleteFunc(near, func(secret string) bool {
		return secret == "" || isKnown(h, Credential{ID: c.ID, Secret: secret})
	})
}

// unknownIDs returns near misses of an id that no credential of the harness has.
func unknownIDs(h Harness, id string) []string {
	near := []string{id + "-unknown", "unknown-" + id, id + "x", strings.Repeat("x", 1000)}
	return slices.DeleteFunc(near, func(id string) bool { return isID(h, id) })
}

func swapCase(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsUpper(c) {
			return unicode.ToLower(c)
		}
		return unicode.ToUpper(c)
	}, text)
}

func isID(h Harness, id string) bool {
	has := func(c Credential) bool { return c.ID == id }
	return slices.ContainsFunc(h.SignsIn, has) || slices.ContainsFunc(h.Refused, has)
}

func isKnown(h Harness, presented Credential) bool {
	return slices.ContainsFunc(h.SignsIn, func(c Credential) bool {
		return c.ID == presented.ID && c.Secret == presented.Secret
	})
}
