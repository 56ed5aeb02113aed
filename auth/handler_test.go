package auth_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
)

// nowhere is a store that acknowledges every change and forgets it.
type nowhere struct{}

func (nowhere) Apply(context.Context, webhookcfg.Change) error { return nil }

func (nowhere) Resolve(context.Context, string, string) (webhookcfg.Webhook, error) {
	return webhookcfg.Webhook{}, nil
}

// serve serves the handler with a verifier over loopback. The test sets the source of a
// request in X-Forwarded-For.
func serve(t *testing.T, v webhookcfg.CredentialVerifier) *httptest.Server {
	t.Helper()
	h := hooktest.NewHandler(t, nowhere{}, v, nil)
	return hooktest.Serve(t, mustWithSource(netip.MustParsePrefix("127.0.0.1/32"))(h))
}

// unset sends an unset of one entity and returns the response without its date.
func unset(t *testing.T, server *httptest.Server, source, id, secret string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, server.URL+"/api/v1/configure/configure-webhook/e1", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Forwarded-For", source)
	request.SetBasicAuth(id, secret)
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	response.Header.Del("Date")
	return response, fmt.Sprintln(response.Status, response.Header) + string(body)
}

// TestFloodOverHTTP sends a bounded flood through all layers: the cache, the throttle,
// the file and the handler.
func TestFloodOverHTTP(t *testing.T) {
	f := mustOpen(t, writeFile(t,
		sha256Line("acme", "right"), sha256Line("gone", "right")+" disabled", sha256Line("other", "right")), nil)
	const burst = 20
	server := serve(t, mustCache(t, mustThrottle(t, f, &auth.ThrottleOptions{
		PerClientAndSource: auth.Rate{Burst: burst, Every: time.Hour}, // however slow the machine is
	}), nil))

	want := ""
	for _, c := range [][2]string{{"unknown", "right"}, {"acme", "wrong"}, {"gone", "right"}} {
		_, text := unset(t, server, "192.0.2.9", c[0], c[1])
		if want == "" {
			want = text
		}
		if text != want || !strings.HasPrefix(text, "401 ") {
			t.Errorf("%s: got\n%s\nwant\n%s", c[0], text, want)
		}
	}

	status := func(source, id, secret string) int {
		response, text := unset(t, server, source, id, secret)
		seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
		if limited := response.StatusCode == http.StatusTooManyRequests; limited != (err == nil && seconds > 0) {
			t.Errorf("got %s", text)
		}
		return response.StatusCode
	}
	count := map[int]int{}
	for range 60 {
		count[status("192.0.2.1", "acme", "wrong")]++
	}
	if count[401] != burst || count[429] != 60-burst {
		t.Errorf("the flood got %v", count)
	}
	for _, step := range []struct {
		what, source, id string
		want             int
	}{
		{"the owner elsewhere", "192.0.2.2", "acme", 200},
		{"another client at the source of the flood", "192.0.2.1", "other", 200},
		{"the right guess of the flood, although it is remembered for its owner", "192.0.2.1", "acme", 429},
	} {
		if got := status(step.source, step.id, "right"); got != step.want {
			t.Errorf("%s got %d, want %d", step.what, got, step.want)
		}
	}
	for range 60 {
		_ = status("192.0.2.2", "acme", "wrong")
	}
	if got := status("192.0.2.2", "acme", "right"); got != 200 {
		t.Errorf("the remembered client got %d during a flood from its own address", got)
	}
}
