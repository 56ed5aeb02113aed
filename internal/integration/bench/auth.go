package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

func authPairs() []pair {
	plain, err := auth.Static(auth.Credential{ID: clientID, Secrets: []string{clientSecret}})
	if err != nil {
		panic(err)
	}
	stored := sha256.Sum256([]byte(clientSecret))
	bare := benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			presented := sha256.Sum256([]byte(clientSecret))
			if subtle.ConstantTimeCompare(presented[:], stored[:]) != 1 {
				b.Fatal("refused")
			}
		}
	})
	return []pair{
		{"verify a secret hashed with SHA-256, beside SHA-256 and compare", verify(plain, clientSecret), bare, 2},
		{"refuse an unknown client, beside refusing a wrong secret", refused(plain, "nobody"), refused(plain, clientID), 1.1},
		{"verify a secret hashed with PBKDF2 again, behind the cache, beside SHA-256", verify(cachedPBKDF2(), clientSecret), verify(plain, clientSecret), 20},
	}
}

func verify(v webhookcfg.CredentialVerifier, secret string) side {
	return benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.Verify(context.Background(), clientID, secret); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func refused(v webhookcfg.CredentialVerifier, id string) side {
	return benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.Verify(context.Background(), id, "wrong"); err == nil {
				b.Fatal("signed in")
			}
		}
	})
}

// cachedPBKDF2 is a credential file with one slow hash, behind a cache.
func cachedPBKDF2() webhookcfg.CredentialVerifier {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	line, err := auth.PBKDF2Line(clientID, clientSecret)
	if err != nil {
		panic(err)
	}
	path := filepath.Join(dir, "credentials")
	if err := os.WriteFile(path, fmt.Appendln(nil, line), 0o600); err != nil {
		panic(err)
	}
	file, err := auth.OpenFile(path, nil)
	if err != nil {
		panic(err)
	}
	cached, err := auth.Cache(file, nil)
	if err != nil {
		panic(err)
	}
	return cached
}
