package portal_test

import (
	"crypto/rand"
	"fmt"
	"html/template"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

// german has a few of the keys of [portal.Texts]. The others stay English.
var german = map[string]string{"lang": "de", "title": "Webhooks von Acme"}

var layout = template.Must(template.New("layout").Parse(`<!DOCTYPE html>
<html lang="{{.Lang}}"><meta charset="utf-8"><title>{{.Title}}</title>
<link rel="stylesheet" href="?page=style">
<header>Acme</header>{{.Content}}`))

// The comments say when you'd set each option.
func ExampleOptions() {
	clients, err := auth.NewStatic(auth.Credential{ID: "acme", Secrets: []auth.Secret{auth.GenerateSecret()}})
	if err != nil {
		log.Fatal(err)
	}
	handler, err := webhookcfg.NewHandler(store.NewMemory(), clients, nil)
	if err != nil {
		log.Fatal(err)
	}
	pages, err := portal.New(handler, &portal.Options{
		// People are signed in to your service already: ask your session.
		Client:    func(*http.Request) (client, actor string, err error) { return "acme", "ann@acme.example", nil },
		SignInURL: "/sign-in",
		// Nobody should change all entities at once by hand.
		OneOnly: true,
		// Your users prefer other languages than English.
		Text: func(r *http.Request, key string) string {
			if strings.HasPrefix(r.Header.Get("Accept-Language"), "de") {
				return german[key]
			}
			return ""
		},
		Layout: func(w http.ResponseWriter, _ *http.Request, page portal.Page) {
			fmt.Println(page.Status, page.Lang, page.Title)
			fmt.Println("may set all:", strings.Contains(string(page.Content), `href="?page=all"`))
			// Your dashboard, on another origin, shows the portal in a frame.
			policy := w.Header().Get("Content-Security-Policy")
			w.Header().Set("Content-Security-Policy", strings.Replace(policy, "frame-ancestors 'none'", "frame-ancestors https://dashboard.acme.example", 1))
			w.WriteHeader(page.Status)
			_ = layout.Execute(w, page) // an error means that the browser disconnected
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/?page=overview", nil)
	r.Header.Set("Accept-Language", "de-AT,de")
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, r)
	_, frames, _ := strings.Cut(w.Header().Get("Content-Security-Policy"), "frame-ancestors ")
	fmt.Println("in a frame of", frames)
	// Output:
	// 200 de Webhooks von Acme
	// may set all: false
	// in a frame of https://dashboard.acme.example
}

// People sign in with a client's id and secret. They stay signed in on all your replicas,
// even while you rotate the key: first all replicas get the new key, then they use it.
func ExampleSignIn() {
	clients, err := auth.NewStatic(auth.Credential{ID: "acme", Secrets: []auth.Secret{auth.NewSecret("a-long-random-secret")}})
	if err != nil {
		log.Fatal(err)
	}
	handler, err := webhookcfg.NewHandler(store.NewMemory(), clients, nil)
	if err != nil {
		log.Fatal(err)
	}
	replica := func(keys ...[]byte) http.Handler {
		pages, err := portal.New(handler, &portal.Options{SignIn: &portal.SignIn{
			// You have several replicas, or want sessions to survive a restart.
			Keys: keys,
		}})
		if err != nil {
			log.Fatal(err)
		}
		return pages
	}
	oldKey, newKey := make([]byte, 32), make([]byte, 32)
	rand.Read(oldKey)
	rand.Read(newKey)

	form := url.Values{"username": {"acme"}, "password": {"a-long-random-secret"}}
	r := httptest.NewRequest(http.MethodPost, "/?page=sign-in", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	page := httptest.NewRecorder()
	replica(newKey, oldKey).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/?page=overview", nil))
	r.AddCookie(page.Result().Cookies()[0])
	w := httptest.NewRecorder()
	replica(newKey, oldKey).ServeHTTP(w, r)
	cookie := w.Result().Cookies()[0]
	fmt.Println(cookie.Name)

	for _, keys := range [][][]byte{{oldKey, newKey}, {newKey}, {oldKey}} {
		r := httptest.NewRequest(http.MethodGet, "/?page=overview", nil)
		r.AddCookie(cookie)
		w := httptest.NewRecorder()
		replica(keys...).ServeHTTP(w, r)
		fmt.Println("signed in:", w.Code == http.StatusOK)
	}
	// Output:
	// __Host-webhooks
	// signed in: true
	// signed in: true
	// signed in: false
}
