package admin_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
)

func TestAudit(t *testing.T) {
	st := store.NewMemory()
	set := func(scope webhookcfg.Scope, url string) {
		if err := st.Apply(t.Context(), webhookcfg.SetChange("acme", scope, egress.NewURL(url))); err != nil {
			t.Fatal(err)
		}
	}
	set(webhookcfg.All(), "http://base.example.com/")
	var want []string
	want = append(want, fmt.Sprintf("all %v", egress.ErrNotHTTPS))
	for i := range 2500 { // more than two pages
		url := "https://good.example.com/"
		if i%100 == 7 {
			url = "https://127.0.0.1/t0ken"
			want = append(want, fmt.Sprintf("entity e%04d %v", i, egress.ErrNotPublic))
		}
		set(webhookcfg.Entity(fmt.Sprintf("e%04d", i)), url)
	}
	if err := st.Apply(t.Context(), webhookcfg.UnsetChange("acme", webhookcfg.Entity("off"))); err != nil {
		t.Fatal(err)
	}
	audit := func(policy *egress.Policy) (got []string) {
		for violation, err := range admin.Audit(t.Context(), st, "acme", policy) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%v %v", violation.Scope, violation.Err))
		}
		return got
	}
	if diff := cmp.Diff(want, audit(new(egress.Policy))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, audit(nil)); diff != "" {
		t.Errorf("without a policy: -want +got:\n%s", diff)
	}
	if got := audit(egress.Development()); got != nil {
		t.Errorf("a policy that allows everything here refuses %q", got)
	}
	for violation := range admin.Audit(t.Context(), st, "acme", new(egress.Policy)) {
		if !violation.Scope.IsAll() {
			t.Errorf("the base does not come first, but %v", violation.Scope)
		}
		break
	}
}

// TestAuditAll: the violations of all clients name them, and the walk ends when told to.
func TestAuditAll(t *testing.T) {
	st := store.NewMemory()
	for client, url := range map[string]string{"acme": "http://a.example.com/", "globex": "https://b.example.com/", "initech": "http://c.example.com/"} {
		for _, scope := range []webhookcfg.Scope{webhookcfg.All(), webhookcfg.Entity("e1")} {
			if err := st.Apply(t.Context(), webhookcfg.SetChange(client, scope, egress.NewURL(url))); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{"acme all", "acme entity e1", "initech all", "initech entity e1"}
	for enough := 1; enough <= len(want)+1; enough++ {
		var got []string
		for violation, err := range admin.AuditAll(t.Context(), st, nil) {
			if err != nil || !errors.Is(violation.Err, egress.ErrNotHTTPS) {
				t.Fatal(violation, err)
			}
			if got = append(got, fmt.Sprint(violation.Client, " ", violation.Scope)); len(got) == enough {
				break
			}
		}
		if diff := cmp.Diff(want[:min(enough, len(want))], got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// TestAuditOfInvalidPolicy: with a policy that no handler accepts, Audit ends with the reason instead of
// a list of all that the rest of the policy refuses, also if there's nothing to audit.
func TestAuditOfInvalidPolicy(t *testing.T) {
	st, empty := store.NewMemory(), store.NewMemory()
	if err := st.Apply(t.Context(), webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://10.1.2.3/"))); err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{"10.1.2.3/8", "0.0.0.0/0"} {
		policy := &egress.Policy{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix(prefix)}}
		for _, audited := range []*store.Memory{st, empty} {
			yielded := 0
			for violation, err := range admin.AuditAll(t.Context(), audited, policy) {
				if yielded++; err == nil || !strings.Contains(err.Error(), prefix) {
					t.Errorf("%s: %+v, %v", prefix, violation, err)
				}
			}
			if yielded != 1 {
				t.Errorf("%s: %d results, want the error", prefix, yielded)
			}
		}
	}
}

var errBroken = errors.New("broken on purpose")

// brokenLister fails on the page after the first.
type brokenLister struct{ *store.Memory }

func (l brokenLister) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	if after != "" {
		return webhookcfg.Page{}, errBroken
	}
	return webhookcfg.Page{Next: "e"}, nil
}

func TestAuditFails(t *testing.T) {
	st := store.NewMemory()
	for _, scope := range []webhookcfg.Scope{webhookcfg.All(), webhookcfg.Entity("e1")} {
		if err := st.Apply(t.Context(), webhookcfg.SetChange("acme", scope, egress.NewURL("https://93.184.216.34/t0ken"))); err != nil {
			t.Fatal(err)
		}
	}
	undecided := &egress.Policy{LocalAddrs: func(context.Context) ([]netip.Addr, error) { return nil, errBroken }}
	for name, audit := range map[string]iter.Seq2[admin.Violation, error]{
		"lister":      admin.Audit(t.Context(), brokenLister{}, "acme", new(egress.Policy)),
		"local addrs": admin.Audit(t.Context(), st, "acme", undecided),
	} {
		var all []error
		for violation, err := range audit {
			if violation.Err != nil {
				t.Errorf("%s: violation %v", name, violation)
			}
			all = append(all, err)
		}
		if !slices.EqualFunc(all, []error{errBroken}, errors.Is) {
			t.Errorf("%s: got %v", name, all)
		}
	}
}
