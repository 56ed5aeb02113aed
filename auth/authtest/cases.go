package authtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// Case is a requirement on a verifier.
type Case struct {
	// Name describes the requirement.
	Name string
	// Check returns nil if your verifier meets the requirement. Otherwise it returns an
	// error, which may wrap [ErrAbsent]. Its errors contain no secret.
	Check func(ctx context.Context, h Harness) error
}

// ErrAbsent is wrapped by the error of a case that can't run because your harness lacks
// something.
var ErrAbsent = errors.New("authtest: absent from the harness")

// Cases returns the cases of the suite. Use it if you don't have a [testing.T].
func Cases() []Case {
	return []Case{
		{"signs in the owner", signsInOwner},
		{"refuses wrong secrets", refusesWrongSecrets},
		{"compares whole secrets", comparesWholeSecrets},
		{"refuses unknown clients", refusesUnknownClients},
		{"refuses disabled clients and retired secrets", refusesDisabledAndRetired},
		{"keeps clients apart", keepsClientsApart},
		{"does the same work for every refusal", costsTheSame},
		{"errors contain no secret", containsNoSecret},
		{"gives no wrong verdict after the context has ended", endedContext},
		{"reports an outage as an outage", outageIsNoRefusal},
		{"returns soon after the context has ended", returnsSoon},
		{"is safe for concurrent use", concurrentUse},
	}
}

func signsInOwner(ctx context.Context, h Harness) error {
	for i, c := range h.SignsIn {
		if err := accepts(ctx, h, c); err != nil {
			return fmt.Errorf("credential %d: %w", i, err)
		}
	}
	return nil
}

func refusesWrongSecrets(ctx context.Context, h Harness) error {
	return betweenSignIns(ctx, h, func(c Credential) error {
		return refusesSecrets(ctx, h, c, wrongSecrets(h, c))
	})
}

func refusesUnknownClients(ctx context.Context, h Harness) error {
	return betweenSignIns(ctx, h, func(c Credential) error {
		for _, near := range unknownIDs(h, c.ID) {
			if err := refuses(ctx, h, Credential{ID: near.text, Secret: c.Secret}); err != nil {
				return fmt.Errorf("the unknown id %+q (the known one %s): %w", near.text, near.how, err)
			}
		}
		return nil
	})
}

// minLong is how much of a secret bcrypt compares.
const minLong = 72

func comparesWholeSecrets(ctx context.Context, h Harness) error {
	tested := false
	for i, c := range h.SignsIn {
		if len(c.Secret) < minLong {
			continue
		}
		tested = true
		if err := refusesSecrets(ctx, h, c, wrongEnds(h, c)); err != nil {
			return fmt.Errorf("credential %d: %w", i, err)
		}
	}
	if !tested {
		return fmt.Errorf("%w: no secret in Harness.SignsIn has %d bytes: that long secrets are compared as a whole is not tested", ErrAbsent, minLong)
	}
	return nil
}

func refusesDisabledAndRetired(ctx context.Context, h Harness) error {
	if len(h.Refused) == 0 {
		return fmt.Errorf("%w: no credential in Harness.Refused: that disabled clients are refused is not tested", ErrAbsent)
	}
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
	return betweenSignIns(ctx, h, func(c Credential) error {
		for _, shifted := range shiftedCredentials(h, c) {
			if err := refuses(ctx, h, shifted); err != nil {
				return fmt.Errorf("divided at another byte: %w", err)
			}
		}
		return nil
	})
}

func outageIsNoRefusal(ctx context.Context, h Harness) error {
	if h.Unavailable == nil {
		return fmt.Errorf("%w: Harness.Unavailable is nil: that an outage is no refusal is not tested", ErrAbsent)
	}
	for i, c := range h.SignsIn {
		for _, presented := range []Credential{
			c,
			{ID: c.ID, Secret: wrongSecrets(h, c)[0].text},
			{ID: unknownIDs(h, c.ID)[0].text, Secret: c.Secret},
		} {
			client, err := verify(ctx, h.Unavailable, presented)
			switch {
			case err == nil:
				return fmt.Errorf("credential %d: signed in during an outage", i)
			case errors.Is(err, errPanic):
				return fmt.Errorf("credential %d: %w", i, err)
			case errors.Is(err, webhookcfg.ErrInvalidCredentials):
				return fmt.Errorf("credential %d: an outage looks like a refusal, so the client gets 401 for a credential that may be valid", i)
			case client != webhookcfg.Client{}:
				return fmt.Errorf("credential %d: failed, but returned a client", i)
			case quotes(err, presented, false):
				return fmt.Errorf("credential %d: error contains the presented secret, half of it, or a hash of it", i)
			}
		}
	}
	return nil
}

var errPanic = errors.New("the verifier panicked")

// verify calls a verifier. It turns a panic into an error, since the panic's value may contain
// a secret.
func verify(ctx context.Context, v webhookcfg.CredentialVerifier, c Credential) (client webhookcfg.Client, err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return v.Verify(ctx, c.ID, c.Secret)
}

// accepts returns nil if the credential signs in its owner.
func accepts(ctx context.Context, h Harness, c Credential) error {
	client, err := verify(ctx, h.Verifier, c)
	if errors.Is(err, errPanic) {
		return err
	}
	if err != nil {
		return fmt.Errorf("not signed in: %T", err)
	}
	if client.ID != c.Owner {
		return fmt.Errorf("signed in %q, want %q", client.ID, c.Owner)
	}
	if client.SecretName == c.Secret || leaks(client.SecretName, c, false) {
		return errors.New("Client.SecretName contains the secret, half of it, or a hash of it; if that's by chance, use a generated secret")
	}
	return nil
}

// refuses returns nil if the credential is refused as invalid.
func refuses(ctx context.Context, h Harness, c Credential) error {
	client, err := verify(ctx, h.Verifier, c)
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

func refusesSecrets(ctx context.Context, h Harness, c Credential, wrong []nearMiss) error {
	for _, near := range wrong {
		if err := refuses(ctx, h, Credential{ID: c.ID, Secret: near.text}); err != nil {
			return fmt.Errorf("a wrong secret (the right one %s): %w", near.how, err)
		}
	}
	return nil
}

// betweenSignIns makes a check for each credential, which signs in before it and after it: a
// verifier that remembers results must not mix them up.
func betweenSignIns(ctx context.Context, h Harness, check func(Credential) error) error {
	for i, c := range h.SignsIn {
		if err := accepts(ctx, h, c); err != nil {
			return fmt.Errorf("credential %d: %w", i, err)
		}
		if err := check(c); err != nil {
			return fmt.Errorf("credential %d: %w", i, err)
		}
		if err := accepts(ctx, h, c); err != nil {
			return fmt.Errorf("credential %d, after other credentials were refused: %w", i, err)
		}
	}
	return nil
}
