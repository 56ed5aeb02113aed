package webhookcfg_test

import (
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func TestNewHandlerRefuses(t *testing.T) {
	good, v := newRecorder(), verifier(verify)
	tests := []struct {
		name     string
		store    webhookcfg.Store
		verifier webhookcfg.CredentialVerifier
		change   func(o *webhookcfg.Options)
		want     string
	}{
		{"nil store", nil, v, nil, "nil Store"},
		{"nil verifier", good, nil, nil, "nil CredentialVerifier"},
		{"relative base path", good, v, func(o *webhookcfg.Options) { o.BasePath = "hooks" }, "BasePath"},
		{"unclean base path", good, v, func(o *webhookcfg.Options) { o.BasePath = "/a//b" }, "BasePath"},
		{"dots in base path", good, v, func(o *webhookcfg.Options) { o.BasePath = "/a/../b" }, "BasePath"},
		{"wildcard in base path", good, v, func(o *webhookcfg.Options) { o.BasePath = "/{tenant}" }, "BasePath"},
		{"escape in base path", good, v, func(o *webhookcfg.Options) { o.BasePath = "/a%2fb" }, "BasePath"},
		{"letter beyond ASCII in base path", good, v, func(o *webhookcfg.Options) { o.BasePath = "/\u0161" }, "BasePath"},
		{"empty alias", good, v, func(o *webhookcfg.Options) { o.VariantAliases = []string{""} }, "VariantAlias"},
		{"root alias", good, v, func(o *webhookcfg.Options) { o.VariantAliases = []string{"/"} }, "VariantAlias"},
		{"alias below a path", good, v, func(o *webhookcfg.Options) { o.VariantAliases = []string{variant + "/x"} }, "overlaps"},
		{"alias above a path", good, v, func(o *webhookcfg.Options) { o.VariantAliases = []string{"/api"} }, "overlaps"},
		{"alias twice", good, v, func(o *webhookcfg.Options) { o.VariantAliases = []string{"/w", "/w/"} }, "overlaps"},
		{"quote in realm", good, v, func(o *webhookcfg.Options) { o.Realm = `a"b` }, "Realm"},
		{"line break in realm", good, v, func(o *webhookcfg.Options) { o.Realm = "a\r\nb" }, "Realm"},
		{"probe longer than the request", good, v, func(o *webhookcfg.Options) { o.Timeout, o.ProbeTimeout = 1, 1 }, "ProbeTimeout"},
		{"negative timeout", good, v, func(o *webhookcfg.Options) { o.Timeout = -1 }, "negative"},
		{"negative limit", good, v, func(o *webhookcfg.Options) { o.BodyLimit = -1 }, "negative"},
		{"unknown scope", good, v, func(o *webhookcfg.Options) { o.AllScope = 3 }, "AllScope 3"},
		{"invalid policy next to a prober", good, v, func(o *webhookcfg.Options) {
			o.Policy, o.Prober = &egress.Policy{Ports: []uint16{0}}, prober(nil)
		}, "port 0"},
		{"unknown mode", good, v, func(o *webhookcfg.Options) { o.ProbeMode = 9 }, "ProbeMode 9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options()
			if tt.change != nil {
				tt.change(o)
			}
			h, err := webhookcfg.NewHandler(tt.store, tt.verifier, o)
			if err == nil || h != nil || !strings.HasPrefix(err.Error(), "webhookcfg: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v and the error %v, want one about %s", h, err, tt.want)
			}
		})
	}
	if _, err := webhookcfg.NewHandler(good, v, nil); err != nil {
		t.Errorf("nil options: %v", err)
	}
}

// TestOptionsAreCopied: nobody changes a handler through its options.
func TestOptionsAreCopied(t *testing.T) {
	h := newHandler(t, newRecorder(), options())
	h.Options().Policy.AllowHTTP = true
	if o := h.Options(); o.Policy.AllowHTTP || o.Timeout == 0 {
		t.Errorf("got %+v", o)
	}
}
