package webhookcfg_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// oneClient is a verifier that knows one client. Package auth has better ones.
type oneClient struct{ id, secret string }

func (c oneClient) Verify(_ context.Context, id, secret string) (webhookcfg.Client, error) {
	if id != c.id || secret != c.secret {
		return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
	}
	return webhookcfg.Client{ID: id}, nil
}

func ExampleNewHandler() {
	configurations := store.NewMemory()
	h, err := webhookcfg.NewHandler(configurations, oneClient{"acme", "s3cret"}, &webhookcfg.Options{
		BasePath:  "/hooks",
		ProbeMode: webhookcfg.ProbeOff, // there is nothing to reach in an example
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	h.Register(mux)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "the host's own page") })
	server := h.Before(mux) // serve this

	r := httptest.NewRequest("POST", "/hooks/api/v1/configure/configure-webhook",
		strings.NewReader(`{"endpoint_id":"e1","webhook_url":"https://hooks.example.com/in?token=t0ken"}`))
	r.Header.Set("Content-Type", "application/json")
	r.SetBasicAuth("acme", "s3cret")
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)

	hook, err := configurations.Resolve(context.Background(), "acme", "e1")
	fmt.Println(hook.Source, hook.URL, err)
	fmt.Println(hook.URL.Reveal())
	// Output:
	// 200 {"message":"successful"}
	// override https://hooks.example.com <nil>
	// https://hooks.example.com/in?token=t0ken
}

// Middleware around Before sees every request. Middleware in the mux doesn't see those for
// the handler's paths.
func ExampleHandler_Before() {
	h, err := webhookcfg.NewHandler(store.NewMemory(), oneClient{"acme", "s3cret"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	logged := func(name string, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Println(name, "sees", r.URL.Path)
			next.ServeHTTP(w, r)
		})
	}
	mux := http.NewServeMux() // with your own routes
	server := logged("outside", h.Before(logged("inside", mux)))

	for _, path := range []string{"/page", "/api/v1/configure/configure-webhook"} {
		server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
	// Output:
	// outside sees /page
	// inside sees /page
	// outside sees /api/v1/configure/configure-webhook
}

// Your dashboard changes webhooks with the same checks as a client's request.
func ExampleHandler_Set() {
	h, err := webhookcfg.NewHandler(store.NewMemory(), oneClient{"acme", "s3cret"}, &webhookcfg.Options{
		ProbeMode: webhookcfg.ProbeOff, // there is nothing to reach in an example
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := webhookcfg.ContextWithActor(context.Background(), "ada@example.com") // for the log
	fmt.Println(h.Set(ctx, "acme", webhookcfg.Entity("e1"), "https://hooks.example.com/in?token=t0ken"))

	err = h.Set(ctx, "acme", webhookcfg.All(), "http://hooks.example.com/in?token=t0ken")
	var refused *webhookcfg.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Status, refused.Code)
		fmt.Println(refused.Description) // you can show this to the user
	}
	// Output:
	// <nil>
	// 400 invalid_webhook_url
	// The URL must be absolute with the scheme https
}

// You can sign clients in on a path of your own, with the same events and responses.
func ExampleHandler_SignIn() {
	h, err := webhookcfg.NewHandler(store.NewMemory(), oneClient{"acme", "s3cret"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /usage", func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		client, err := h.SignIn(r.Context(), id, secret)
		if refusal, ok := errors.AsType[*webhookcfg.Error](err); ok {
			refusal.ServeHTTP(w, r)
			return
		}
		fmt.Fprintln(w, "the usage of", client.ID)
	})

	for _, secret := range []string{"s3cret", "wrong"} {
		r := httptest.NewRequest("GET", "/usage", nil)
		r.SetBasicAuth("acme", secret)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// 200 the usage of acme
	//
	// 401 {"error":"invalid_client","error_description":"Invalid client credentials"}
}

// The table of states and operations, printed from a store: the states of an entity, the
// operations, and the webhook in effect after each of them.
func Example_states() {
	const client = "acme"
	ctx := context.Background()
	u, v, b := egress.NewURL("https://u.example.com/"), egress.NewURL("https://v.example.com/"), egress.NewURL("https://b.example.com/")
	one, all := webhookcfg.Entity("e"), webhookcfg.All()
	states := []struct {
		name    string
		history []webhookcfg.Change
	}{
		{"nothing", nil},
		{"base b", []webhookcfg.Change{webhookcfg.SetChange(client, all, b)}},
		{"override v, no base", []webhookcfg.Change{webhookcfg.SetChange(client, one, v)}},
		{"override v, base b", []webhookcfg.Change{webhookcfg.SetChange(client, all, b), webhookcfg.SetChange(client, one, v)}},
		{"off, base b", []webhookcfg.Change{webhookcfg.SetChange(client, all, b), webhookcfg.UnsetChange(client, one)}},
	}
	operations := []webhookcfg.Change{
		webhookcfg.SetChange(client, one, u), webhookcfg.SetChange(client, all, u),
		webhookcfg.UnsetChange(client, one), webhookcfg.UnsetChange(client, all),
	}
	after := func(history ...webhookcfg.Change) string {
		st := store.NewMemory()
		for _, c := range history {
			if err := st.Apply(ctx, c); err != nil {
				return err.Error()
			}
		}
		hook, err := st.Resolve(ctx, client, "e")
		if err != nil {
			return err.Error()
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(hook.URL.String(), "https://"), ".")
		return strings.TrimSpace(hook.Source.String() + " " + name)
	}
	fmt.Printf("%-20s %-11s %-10s %-8s %-10s %s\n", "state of e", "set e u", "set all u", "unset e", "unset all", "resolve e")
	for _, s := range states {
		fmt.Printf("%-20s", s.name)
		for i, width := range []int{11, 10, 8, 10} {
			fmt.Printf(" %-*s", width, after(append(s.history[:len(s.history):len(s.history)], operations[i])...))
		}
		fmt.Printf(" %s\n", after(s.history...))
	}
	// Output:
	// state of e           set e u     set all u  unset e  unset all  resolve e
	// nothing              override u  base u     none     none       none
	// base b               override u  base u     off      none       base b
	// override v, no base  override u  base u     none     none       override v
	// override v, base b   override u  base u     off      none       override v
	// off, base b          override u  base u     off      none       off
}
