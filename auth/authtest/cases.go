package authtest

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/interrupt"
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
		for _, shifted := range shiftedCredentials(h, a) {
			if err := refuses(ctx, h, shifted); err != nil {
				return fmt.Errorf("credential %d, divided at another byte: %w", i, err)
			}
		}
	}
	return nil
}

func costsTheSame(ctx context.Context, h Harness) error {
	if h.Work == nil {
		return fmt.Errorf("%w: Harness.Work is nil: that all refusals cost the same is not tested", ErrAbsent)
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
	for i, c := range h.SignsIn {
		for _, ctx := range []context.Context{ctx, ended} {
			for _, id := range []string{c.ID, unknownIDs(h, c.ID)[0]} {
				_, err := verify(ctx, h, Credential{ID: id, Secret: marker})
				if contains(err, id, marker) {
					return errors.New("error contains the presented secret")
				}
				if contains(err, c.ID, c.Secret) && !strings.Contains(c.ID, c.Secret) {
					return fmt.Errorf("error contains the secret of credential %d, which was not presented", i)
				}
			}
		}
		if _, err := verify(ended, h, c); contains(err, c.ID, c.Secret) && !strings.Contains(c.ID, c.Secret) {
			return fmt.Errorf("error contains the secret of credential %d", i)
		}
	}
	return nil
}

// contains reports whether an error text contains the secret, as it is or encoded.
func contains(err error, id, secret string) bool {
	if err == nil {
		return false
	}
	return holds(fmt.Sprintf("%v %+v %#v", err, err, err), id, secret)
}

// holds reports whether a text contains the secret, as it is or encoded, or a plain hash of
// it. To a caller who guesses, that's as good as the secret.
func holds(text, id, secret string) bool {
	forms := []string{secret, strings.Trim(strconv.Quote(secret), `"`), url.QueryEscape(secret), url.PathEscape(secret), hex.EncodeToString([]byte(secret))}
	for _, plain := range []string{secret, id + ":" + secret} {
		forms = append(forms, base64.RawStdEncoding.EncodeToString([]byte(plain)), base64.RawURLEncoding.EncodeToString([]byte(plain)))
	}
	forms = append(forms, hashes(secret)...)
	return slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(text, form) })
}

func endedContext(ctx context.Context, h Harness) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for i, c := range h.SignsIn {
		if err := noWrongVerdict(ended, h, c); err != nil {
			return fmt.Errorf("credential %d, after the context had ended: %w", i, err)
		}
	}
	for i, c := range refusals(h) {
		if _, err := verify(ended, h, c); err == nil {
			return fmt.Errorf("refusal %d: signed in after the context had ended", i)
		}
	}
	err := interrupt.Each(ctx, func(over context.Context) error { return noWrongVerdict(over, h, h.SignsIn[0]) })
	if err != nil {
		return fmt.Errorf("credential 0: %w", err)
	}
	return nil
}

// noWrongVerdict returns nil if a valid credential signs in or fails, but isn't refused.
func noWrongVerdict(ctx context.Context, h Harness, c Credential) error {
	client, err := verify(ctx, h, c)
	switch {
	case errors.Is(err, webhookcfg.ErrInvalidCredentials):
		return errors.New("valid, but refused")
	case errors.Is(err, errPanic):
		return err
	case err == nil && client.ID != c.Owner:
		return errors.New("signed in another client")
	}
	return nil
}

// returnsSoon makes many calls, so a verifier that is only a little late exceeds the limit,
// and a correct one doesn't come near it.
func returnsSoon(ctx context.Context, h Harness) error {
	const calls, limit = 24, 6 * time.Second
	ended, cancel := context.WithCancel(ctx)
	cancel()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		for n := range calls {
			_, _ = verify(ended, h, h.SignsIn[n%len(h.SignsIn)])
		}
	}()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-returned:
		return nil
	case <-late.C:
		return fmt.Errorf("%d calls with a context that has ended take more than %v", calls, limit)
	}
}

func concurrentUse(ctx context.Context, h Harness) error {
	// A verifier with a costly hash may bound its queue, and then fails more than a few
	// checks at a time.
	const rounds, concurrency = 4, 8
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		all   []error
	)
	running := make(chan struct{}, concurrency)
	run := func(check func(context.Context, Harness, Credential) error, c Credential) {
		running <- struct{}{}
		group.Go(func() {
			err := check(ctx, h, c)
			<-running
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

var errPanic = errors.New("the verifier panicked")

// verify calls the verifier. It turns a panic into an error, since the panic's value may
// contain a secret.
func verify(ctx context.Context, h Harness, c Credential) (client webhookcfg.Client, err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return h.Verifier.Verify(ctx, c.ID, c.Secret)
}

// accepts returns nil if the credential signs in its owner.
func accepts(ctx context.Context, h Harness, c Credential) error {
	client, err := verify(ctx, h, c)
	if err != nil {
		return fmt.Errorf("not signed in: %T", err)
	}
	if client.ID != c.Owner {
		return fmt.Errorf("signed in %q, want %q", client.ID, c.Owner)
	}
	// A short text can occur in names by chance.
	if client.SecretName == c.Secret || len(c.Secret) >= 8 && holds(client.SecretName, c.ID, c.Secret) && !strings.Contains(c.ID, c.Secret) {
		return errors.New("Client.SecretName contains the secret or a hash of it")
	}
	return nil
}

// refuses returns nil if the credential is refused as invalid.
func refuses(ctx context.Context, h Harness, c Credential) error {
	client, err := verify(ctx, h, c)
	var later interface{ RetryAfter() time.Duration }
	switch {
	case err == nil:
		return errors.New("signed in")
	case errors.Is(err, errPanic):
		return err
	case !errors.Is(err, webhookcfg.ErrInvalidCredentials):
		return fmt.Errorf("error of type %T does not wrap ErrInvalidCredentials", err)
	case errors.As(err, &later):
		return errors.New("refused with a RetryAfter, which makes the response a 429")
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
			Credential{ID: c.ID, Secret: wrongSecrets(h, c)[0]},
			Credential{ID: c.ID, Secret: wrongSecrets(h, c)[1]})
	}
	return append(all, h.Refused...)
}
