package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

const newURL = "https://hooks.example.net/" + secret + "\n"

func TestSet(t *testing.T) {
	f := newFixture(t)
	for name, at := range f.stores() {
		t.Run(name, func(t *testing.T) {
			f := fixture{t, f.dir}
			f.runTyping(t.Context(), newURL, success, "", "actor=olga", "set", "-no-probe", "-actor", "olga", at, "a", "e1")
			f.run(t.Context(), success, "entity e1: override https://hooks.example.net since 2", "", "show", at, "a", "e1")
			f.run(t.Context(), success, "", "actor=olga", "unset", "-actor", "olga", at, "a", "e1")
			f.run(t.Context(), success, "entity e1: off since 2", "", "show", at, "a", "e1")
		})
	}
}

// TestSetTakesOneURL: a further line on the standard input is refused, not ignored.
func TestSetTakesOneURL(t *testing.T) {
	f := newFixture(t)
	at := f.at("webhooks")
	f.runTyping(t.Context(), newURL+"\n"+newURL, failure, "", "more than the line with the URL", "set", "-no-probe", at, "a", "e1")
	f.run(t.Context(), success, "entity e1: default https://example.com", "", "show", at, "a", "e1")
	f.runTyping(t.Context(), newURL+"\r\n \n", success, "", "", "set", "-no-probe", at, "a", "e1")
	f.run(t.Context(), success, "entity e1: override https://hooks.example.net", "", "show", at, "a", "e1")
}

// TestChangeOfAll: a change of all entities needs -all and the client's name.
func TestChangeOfAll(t *testing.T) {
	f := newFixture(t)
	at := f.at("webhooks")
	f.runTyping(t.Context(), newURL, wrongUsage, "", "either an ENTITY or -all", "set", "-no-probe", at, "a")
	f.runTyping(t.Context(), newURL+"a\n", wrongUsage, "", "either an ENTITY or -all", "set", "-no-probe", "-all", at, "a", "e1")
	f.run(t.Context(), wrongUsage, "", "either an ENTITY or -all", "unset", at, "a")
	f.runTyping(t.Context(), newURL, failure, "", "not confirmed", "set", "-no-probe", "-all", at, "a")
	f.runTyping(t.Context(), "b\n", failure, "", "not confirmed", "unset", "-all", at, "a")
	if got := f.clients("webhooks"); got != "abcd" {
		t.Errorf("changed without a confirmation: %q", got)
	}
	f.runTyping(t.Context(), newURL+"a\n", success, "", "a has 1 webhooks in", "set", "-no-probe", "-all", at, "a")
	f.runTyping(t.Context(), "b\n", success, "", "change all of its entities", "unset", "-all", at, "b")
	if got := f.clients("webhooks"); got != "cd" {
		t.Errorf("after a set and an unset: %q", got)
	}
}

// TestDroppedEntities: before a change of all entities, you read which ones lose what is set for them.
func TestDroppedEntities(t *testing.T) {
	f := newFixture(t)
	at := f.at("webhooks")
	const dropped = "there is no way back: "
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("e%02d", i))
		f.apply(at, webhookcfg.SetChange("many", webhookcfg.Entity(names[i]), egress.NewURL("https://example.com/"+secret)))
	}
	f.apply(at, setAll("none"))
	want := dropped + strings.Join(names[:10], ", ") + ", and 2 more\n"
	f.runTyping(t.Context(), "x\n", failure, "", want, "unset", "-all", at, "many")
	f.runTyping(t.Context(), newURL+"x\n", failure, "", want, "set", "-no-probe", "-all", at, "many")
	f.runTyping(t.Context(), "x\n", failure, "", want, "erase", at, "many")
	f.runTyping(t.Context(), "x\n", failure, "", "You are about to change all of its entities.\n", "unset", "-all", at, "none")
}

// TestSetIsChecked: the handler refuses what it refuses clients.
func TestSetIsChecked(t *testing.T) {
	f := newFixture(t)
	at := f.at("webhooks")
	f.runTyping(t.Context(), "http://hooks.example.net/"+secret, failure, "", "scheme https", "set", "-no-probe", at, "a", "e1")
	f.runTyping(t.Context(), "https://127.0.0.1/"+secret, failure, "", "public unicast", "set", at, "a", "e1")
	f.runTyping(t.Context(), "https://127.0.0.1:1/"+secret, failure, "", "webhook_unreachable", "set", "-allow-prefix", "127.0.0.0/8", at, "a", "e1")
	f.runTyping(t.Context(), newURL, failure, "", "invalid_request", "set", "-no-probe", at, "a", "e/1")
	f.runTyping(t.Context(), "http://127.0.0.1:1/"+secret, success, "", "", "set", "-allow-http", "-allow-prefix", "127.0.0.0/8", "-no-probe", at, "a", "e1")
}

func TestErase(t *testing.T) {
	f := newFixture(t)
	for name, at := range f.stores() {
		t.Run(name, func(t *testing.T) {
			f := fixture{t, f.dir}
			f.run(t.Context(), failure, "", "not confirmed", "erase", at, "b")
			f.run(t.Context(), success, "a\nb\nc\nd\n", "", "clients", at)
			f.runTyping(t.Context(), "b\n", success, "run erase again after that", "b has 1 webhooks in", "erase", at, "b")
			f.run(t.Context(), success, "a\nc\nd\n", "", "clients", at)
			odd := "x\u202ey"
			for _, typed := range []string{odd, `"x\u202ey"`} { // as it is, and as it's printed
				f.apply(at, setAll(odd))
				f.runTyping(t.Context(), "x\n", failure, "", "not confirmed", "erase", at, odd)
				f.runTyping(t.Context(), typed+"\n", success, `erased "x\u202ey"`, `"x\u202ey" has 1 webhooks in`, "erase", at, odd)
			}
			f.runTyping(t.Context(), "nobody\n", success, `{"erased":"nobody"}`, "nobody has 0 webhooks in", "erase", "-json", at, "nobody")
		})
	}
}

func TestAudit(t *testing.T) {
	f := newFixture(t)
	f.clients("empty")
	for _, name := range []string{"webhooks", "empty"} { // nothing to audit is no proof that the policy is valid
		f.run(t.Context(), failure, "", "has bits set beyond its length", "audit", "-deny-prefix", "10.1.2.3/8", f.at(name))
	}
	for name, at := range f.stores() {
		t.Run(name, func(t *testing.T) {
			f := fixture{t, f.dir}
			f.run(t.Context(), success, "", "audited: 4 clients", "audit", at)
			f.run(t.Context(), success, "", "audited: 1 clients", "audit", "-json", at, "a")
			f.run(t.Context(), failure, "", "typo has no webhooks in ", "audit", at, "typo")
			f.apply(at, webhookcfg.SetChange("b", webhookcfg.Entity("e1"), egress.NewURL("http://example.com/"+secret)),
				webhookcfg.UnsetChange("b", webhookcfg.Entity("e2")))
			f.run(t.Context(), found, "b, entity e1: override http://example.com since 0001-01-01T00:00:00Z (the URL must be absolute with the scheme https)\n", "", "audit", at)
			f.run(t.Context(), found, `"rule":"the URL must`, "", "audit", "-json", at, "b")
			f.run(t.Context(), success, "", "", "audit", at, "a")
			f.run(t.Context(), success, "", "", "audit", "-allow-http", at)
			f.apply(at, webhookcfg.SetChange("c", webhookcfg.All(), egress.NewURL("https://93.184.216.34:8443/"+secret)))
			f.run(t.Context(), success, "", "", "audit", "-ports", "443,8443", at, "c")
			f.run(t.Context(), found, "c, default: https://93.184.216.34:8443", "", "audit", "-ports", "443", "-ports", "80", at, "c")
			f.run(t.Context(), found, "c, default: https://93.184.216.34:8443", "", "audit", "-deny-prefix", "93.184.0.0/16", at, "c")
			f.run(t.Context(), wrongUsage, "", "is not a port", "audit", "-ports", "0", at)
		})
	}
}

func TestHealth(t *testing.T) {
	f := newFixture(t)
	for name, at := range f.stores() {
		t.Run(name, func(t *testing.T) {
			f := fixture{t, f.dir}
			f.run(t.Context(), success, "is healthy", "", "health", at)
			f.run(t.Context(), success, `"healthy":true}`, "", "health", "-json", at)
			f.run(t.Context(), success, "4 ", "", "check", at)
		})
	}
	if err := os.WriteFile(f.path("empty.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.run(t.Context(), failure, "", "create the tables with admin copy -migrate", "health", f.inSQLite("empty"))
	f.run(t.Context(), failure, "", "give -migrate", "copy", f.at("webhooks"), f.inSQLite("empty"))
}
