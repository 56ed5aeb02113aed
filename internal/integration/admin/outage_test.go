package admin_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
)

// killing is a store whose server is killed before one of its changes.
type killing struct {
	operated
	left *atomic.Int64
	kill func()
}

func (k killing) Apply(ctx context.Context, c webhookcfg.Change) error {
	if k.left.Add(-1) == 0 {
		k.kill()
	}
	return k.operated.Apply(ctx, c)
}

// TestLostServer kills the destination's server during a copy. The copy fails, and names the
// clients that it copied in part. When the server is back, a second copy completes them.
func TestLostServer(t *testing.T) {
	server := engine.SharedPostgreSQL().Own(t)
	server.SkipIfExternal(t)
	src := modelled(t, content()...)
	to := place{engine: "postgres", address: server.DSN(), prefix: "lost_"}
	var partial []string
	to.use(t, func(dst webhookcfg.Store) {
		left := new(atomic.Int64)
		left.Store(500)
		kill := func() {
			if err := server.Kill(); err != nil {
				t.Error(err)
			}
		}
		report, err := admin.Copy(t.Context(), killing{dst.(operated), left, kill}, src, nil)
		if err == nil || report.Changes < 400 || len(report.Partial) == 0 {
			t.Fatalf("%+v, %v", report, err)
		}
		if text := err.Error(); strings.Contains(text, "/xxx") || !strings.HasPrefix(text, "admin: copy: client ") {
			t.Errorf("the error is %q", text)
		}
		partial = report.Partial
	})
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	to.use(t, func(dst webhookcfg.Store) {
		verified, err := admin.Verify(t.Context(), dst, src, nil)
		if err != nil || verified.Different == 0 {
			t.Fatalf("%+v, %v", verified, err)
		}
		for client, err := range admin.Clients(t.Context(), src) {
			if err != nil {
				t.Fatal(err)
			}
			want, got := dumpOf(t, src, client), dumpOf(t, dst, client)
			if len(got) > 0 && !slices.Equal(want, got) && !slices.Contains(partial, client) {
				t.Errorf("a part of %q was copied, but only %q are named", client, partial)
			}
		}
		mustCopy(t, "again", dst, src)
		requireEqual(t, "again", dst, src)
	})
}
