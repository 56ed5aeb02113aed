package contract_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/contract/testdata/client"
	"example.com/go-webhookcfg/store"
	"github.com/google/go-cmp/cmp"
)

// newClient returns a generated client with credentials, whose exchanges are validated.
func newClient(t *testing.T, base, pair string) *client.ClientWithResponses {
	t.Helper()
	kin := newKinValidator(t, document(t))
	t.Cleanup(func() {
		for _, ex := range kin.exchanges {
			if ex.responseErr != nil {
				t.Errorf("%s: the response %d violates the document: %v", ex.operation, ex.status, ex.responseErr)
			}
		}
	})
	id, secret, _ := strings.Cut(pair, ":")
	c, err := client.NewClientWithResponses(base,
		client.WithHTTPClient(&http.Client{Transport: kin}),
		client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.SetBasicAuth(id, secret)
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestGeneratedClient calls every operation as a user would, and reads the typed responses.
func TestGeneratedClient(t *testing.T) {
	const url, otherURL = "https://hooks.example.com/e1", "https://hooks.example.com/all"
	base, ctx := serveAll(t), t.Context()
	c := newClient(t, base, acme)
	one, two, first := "e1", "e2", 1
	done := &client.Success{Message: "successful"}
	off := client.EndpointOverride{EndpointId: one, Since: noon}

	setAll, err := c.SetWebhookWithResponse(ctx, client.SetEndpoint{WebhookUrl: otherURL})
	check(t, "set all", err, done, setAll.JSON200)
	set, err := c.SetWebhookWithResponse(ctx, client.SetEndpoint{EndpointId: &one, WebhookUrl: url})
	check(t, "set", err, done, set.JSON200)
	setMoc, err := c.SetVariantWebhookWithResponse(ctx, client.SetMoc{MocId: &two, WebhookUrl: url})
	check(t, "set, variant", err, done, setMoc.JSON200)

	read, err := c.ReadVariantWebhookWithResponse(ctx, one)
	check(t, "read, variant", err, &client.MocWebhook{MocId: one, WebhookUrl: new(url), Source: "override", Since: &noon}, read.JSON200)
	unset, err := c.UnsetWebhookWithResponse(ctx, one)
	check(t, "unset", err, done, unset.JSON200)
	readOff, err := c.ReadWebhookWithResponse(ctx, one)
	check(t, "read off", err, &client.EndpointWebhook{EndpointId: one, Source: "off", Since: &noon}, readOff.JSON200)
	page, err := c.ListWebhooksWithResponse(ctx, &client.ListWebhooksParams{Limit: &first})
	check(t, "list", err, &client.EndpointPage{WebhookUrl: new(otherURL), Since: &noon, Overrides: []client.EndpointOverride{off}, Next: &one}, page.JSON200)
	rest, err := c.ListVariantWebhooksWithResponse(ctx, &client.ListVariantWebhooksParams{After: page.JSON200.Next})
	check(t, "list the rest, variant", err, &client.MocPage{
		WebhookUrl: new(otherURL), Since: &noon,
		Overrides: []client.MocOverride{{MocId: two, WebhookUrl: new(url), Since: noon}},
	}, rest.JSON200)

	unsetMoc, err := c.UnsetVariantWebhookWithResponse(ctx, two)
	check(t, "unset, variant", err, done, unsetMoc.JSON200)
	unsetAll, err := c.UnsetAllWebhooksWithResponse(ctx)
	check(t, "unset all", err, done, unsetAll.JSON200)
	unsetAllMoc, err := c.UnsetAllVariantWebhooksWithResponse(ctx)
	check(t, "unset all, variant", err, done, unsetAllMoc.JSON200)
	none, err := c.ReadWebhookWithResponse(ctx, two)
	check(t, "read none", err, &client.EndpointWebhook{EndpointId: two, Source: "none"}, none.JSON200)
}

func check[T any](t *testing.T, name string, err error, want, got T) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", name, diff)
	}
}

// TestGeneratedClientErrors checks that each error has its own type.
func TestGeneratedClientErrors(t *testing.T) {
	base, ctx, empty := serveAll(t), t.Context(), ""
	set := func(pair string, body client.SetEndpoint) *client.SetWebhookResult {
		t.Helper()
		result, err := newClient(t, base, pair).SetWebhookWithResponse(ctx, body)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	good := client.SetEndpoint{WebhookUrl: "https://hooks.example.com/in"}
	at := func(url string) client.SetEndpoint { return client.SetEndpoint{WebhookUrl: url} }
	foreign := "foreign"

	// If a program's variable is empty, that must not mean all entities.
	check(t, "empty id", nil, "invalid_request", string(set(acme, client.SetEndpoint{EndpointId: &empty, WebhookUrl: good.WebhookUrl}).JSON400.Error))
	check(t, "URL", nil, "invalid_webhook_url", string(set(acme, at("ftp://hooks.example.com/")).JSON400.Error))
	check(t, "unreachable", nil, "webhook_unreachable", string(set(acme, at("https://down.example.com/")).JSON400.Error))
	check(t, "unknown", nil, "unknown_entity", string(set(acme, client.SetEndpoint{EndpointId: &foreign, WebhookUrl: good.WebhookUrl}).JSON404.Error))
	check(t, "too large", nil, "request_too_large", string(set(acme, at("https://"+strings.Repeat("x", 16<<10))).JSON413.Error))
	check(t, "defect", nil, "server_error", string(set(defect, good).JSON500.Error))

	refused := set(stranger, good)
	check(t, "stranger", nil, "invalid_client", string(refused.JSON401.Error))
	check(t, "challenge", nil, `Basic realm="webhooks", charset="UTF-8"`, refused.Headers401.WWWAuthenticate)
	wait := set(throttled, good)
	check(t, "throttled", nil, "too_many_requests 2", fmt.Sprint(wait.JSON429.Error, " ", wait.Headers429.RetryAfter))
	later := set(outage, good)
	check(t, "outage", nil, "temporarily_unavailable 1", fmt.Sprint(later.JSON503.Error, " ", later.Headers503.RetryAfter))

	unsupported, err := newClient(t, base, acme).SetWebhookWithBodyWithResponse(ctx, "text/plain", strings.NewReader("x"))
	check(t, "text", err, "unsupported_media_type", string(unsupported.JSON415.Error))
	lost, err := newClient(t, base, acme).UnsetWebhookWithResponse(ctx, "e1/")
	check(t, "slash in an id", err, "invalid_request", string(lost.JSON400.Error))
	noReads := options()
	noReads.Reads = false
	read, err := newClient(t, serve(t, store.NewMemory(), noReads), acme).ReadWebhookWithResponse(ctx, "e1")
	check(t, "no reads", err, "method_not_allowed", string(read.JSON405.Error))
	check(t, "allowed", nil, "DELETE", read.Headers405.Allow)
}

// TestEmptyIdentifier shows why the document warns of empty identifiers. If a client puts one
// into the path of one entity, it requests the path of all with a trailing slash. The same
// happens to "." if the client's URL library removes dot segments. By default, the handler can't
// tell that from a request for all. With AllScopeExact it refuses such paths.
func TestEmptyIdentifier(t *testing.T) {
	base, ctx := serveAll(t), t.Context()
	c := newClient(t, base, acme)
	unchecked, err := client.NewClientWithResponses(base, client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.SetBasicAuth("acme", "s3cret")
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"": "200 none", ".": "200 none", "..": "404 base", "e2": "200 base"} {
		if _, err := c.SetWebhookWithResponse(ctx, client.SetEndpoint{WebhookUrl: "https://hooks.example.com/all"}); err != nil {
			t.Fatal(err)
		}
		unset, err := unchecked.UnsetWebhookWithResponse(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		read, err := c.ReadWebhookWithResponse(ctx, "e1")
		check(t, "unset "+id, err, want, fmt.Sprint(unset.StatusCode(), " ", read.JSON200.Source))
	}
}

// TestGeneratedClientDelivery reads a delivery with the generated client.
func TestGeneratedClientDelivery(t *testing.T) {
	c, url := newClient(t, serveDeliveries(t), acme), "https://hooks.example.com/all"
	success := noon.Add(time.Hour)
	read, err := c.ReadWebhookWithResponse(t.Context(), "e1")
	check(t, "read", err, &client.EndpointWebhook{
		EndpointId: "e1", WebhookUrl: &url, Source: "base", Since: &noon,
		Delivery: &client.Delivery{State: client.Ok, LastSuccess: &success},
	}, read.JSON200)
}
