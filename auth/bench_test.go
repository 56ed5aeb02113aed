package auth_test

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"testing"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

// BenchmarkVerify compares the verifiers at their cheapest: one SHA-256 and one comparison.
func BenchmarkVerify(b *testing.B) {
	const id = "client"
	generated := auth.GenerateSecret()
	secret := generated.Reveal()
	stored := sha256.Sum256([]byte(secret))
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sum := sha256.Sum256([]byte(secret))
			if subtle.ConstantTimeCompare(sum[:], stored[:]) != 1 {
				b.Fatal("differs")
			}
		}
	})
	credentials := []auth.Credential{{ID: id, Secrets: []auth.Secret{generated}}}
	for i := range 999 {
		credentials = append(credentials, auth.Credential{ID: fmt.Sprint("client-", i), Secrets: []auth.Secret{auth.GenerateSecret()}})
	}
	static, err := auth.NewStatic(credentials...)
	if err != nil {
		b.Fatal(err)
	}
	slow := mustOpen(b, writeFile(b, mustLine(auth.PBKDF2Line(id, generated))), nil)
	b.Run("sha256", func(b *testing.B) { benchmarkVerify(b, b.Context(), static, id, secret) })
	b.Run("sha256-unknown", func(b *testing.B) { benchmarkVerify(b, b.Context(), static, "unknown", secret) })
	b.Run("throttle-sha256", func(b *testing.B) { benchmarkVerify(b, from(b, "192.0.2.1"), mustThrottle(b, static, nil), id, secret) })
	b.Run("cache-pbkdf2", func(b *testing.B) { benchmarkVerify(b, b.Context(), mustCache(b, slow, nil), id, secret) })
	b.Run("pbkdf2", func(b *testing.B) { benchmarkVerify(b, b.Context(), slow, id, secret) })
}

func benchmarkVerify(b *testing.B, ctx context.Context, v webhookcfg.CredentialVerifier, id, secret string) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = v.Verify(ctx, id, secret)
	}
}
