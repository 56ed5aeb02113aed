package webhookcfg_test

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

// The comments say when you'd set each option. Leave the others at their defaults.
func ExampleOptions() {
	webhooks := store.NewMemory()
	uuid := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	h, err := webhookcfg.NewHandler(webhooks, oneClient{"acme", "s3cret"}, &webhookcfg.Options{
		// Some of your clients still use an older path.
		VariantAliases: []string{"/v0/hooks"},
		// Your clients' code is generated, and could send an empty identifier by mistake.
		AllScope: webhookcfg.AllScopeExact,
		// Your proxy rewrites paths, but can write the original one to this header.
		OriginalTarget: webhookcfg.TargetFromHeader("X-Original-URI"),
		// You serve several APIs, and people should see which one asks for credentials.
		Realm: "Acme modules",
		// Your identifiers have a stricter syntax, and a typo should be refused at once.
		ValidEntityID: uuid.MatchString,
		ProbeMode:     webhookcfg.ProbeOff, // there is nothing to reach in an example
		// Your load balancer gives up after 10 seconds, and clients should get a response first.
		Timeout: 8 * time.Second,
		// Some receivers are slow, and need more than 4 seconds, half of Timeout, for TLS.
		ProbeTimeout: 6 * time.Second,
		// Your clients' URLs are short, and you don't want to read more than they need.
		BodyLimit: 2 << 10,
		// People sign in by hand, and could type a secret into the field for the id.
		OmitPresentedID: true,
		OnEvent: func(_ context.Context, e webhookcfg.Event) {
			fmt.Printf("%d %s by %q, presented %q\n", e.Status, cmp.Or(e.Code, "ok"), e.Client, e.PresentedID)
		},
		// Your tests compare the time at which a webhook was set.
		Now: func() time.Time { return time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		log.Fatal(err)
	}

	const path = "/api/v1/configure/configure-webhook"
	const entity, another = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c"
	post := func(path, secret, body string) {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Original-URI", path) // your proxy does that
		r.SetBasicAuth("acme", secret)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if challenge := w.Header().Get("WWW-Authenticate"); challenge != "" {
			fmt.Println(challenge)
		}
	}
	post(path, "s3cret", `{"endpoint_id":"`+entity+`","webhook_url":"https://hooks.example.com/in"}`)
	post("/v0/hooks", "s3cret", `{"moc_id":"`+another+`","webhook_url":"https://hooks.example.com/in"}`)
	post(path, "s3cret", `{"endpoint_id":"e1","webhook_url":"https://hooks.example.com/in"}`)
	post(path, "s3cret", `{"webhook_url":"https://hooks.example.com/`+strings.Repeat("x", 2<<10)+`"}`)
	post(path, "wrong", `{}`)
	hook, err := webhooks.Resolve(context.Background(), "acme", entity)
	fmt.Println(hook.Since, err)
	// Output:
	// 200 ok by "acme", presented ""
	// 200 ok by "acme", presented ""
	// 400 invalid_request by "acme", presented ""
	// 413 request_too_large by "acme", presented ""
	// 401 invalid_client by "", presented ""
	// Basic realm="Acme modules", charset="UTF-8"
	// 2027-01-31 12:00:00 +0000 UTC <nil>
}
