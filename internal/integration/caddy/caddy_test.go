// Package caddy_test tests the handler as a Caddy module, with the lines in
// examples/mounts/README.md.
package caddy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/pathtest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/mounttest"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"
)

// service belongs to the modules that are provisioned. Caddy makes these from JSON.
var service *pathtest.Service

func init() { caddy.RegisterModule(new(Module)) }

// Module serves the handler's paths before the handlers that follow it in a route.
type Module struct{ handler *webhookcfg.Handler }

// CaddyModule implements [caddy.Module].
func (*Module) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.webhooks", New: func() caddy.Module { return new(Module) }}
}

// Provision implements [caddy.Provisioner].
func (m *Module) Provision(caddy.Context) error {
	m.handler = service.Handler()
	return nil
}

// README
func (m *Module) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) (err error) {
	m.handler.Before(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err = next.ServeHTTP(w, r)
	})).ServeHTTP(w, r)
	return err
}

// end

// serve runs Caddy with one route until the test ends.
func serve(t *testing.T, handlers ...string) (url string) {
	t.Helper()
	server := map[string]any{
		"listen":          []string{"127.0.0.1:0"},
		"automatic_https": map[string]any{"disable": true},
		"routes":          []any{map[string]any{"handle": raw(handlers)}},
	}
	config, err := json.Marshal(map[string]any{
		"admin":   map[string]any{"disabled": true, "config": map[string]any{"persist": false}},
		"logging": map[string]any{"logs": map[string]any{"default": map[string]any{"level": "ERROR"}}},
		"storage": map[string]any{"module": "file_system", "root": t.TempDir()},
		"apps":    map[string]any{"http": map[string]any{"servers": map[string]any{"test": server}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	app, err := caddy.ActiveContext().App("http")
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + app.(*caddyhttp.App).Servers["test"].Listeners()[0].Addr().String()
}

func raw(handlers []string) (all []json.RawMessage) {
	for _, handler := range handlers {
		all = append(all, json.RawMessage(handler))
	}
	return all
}

// TestModule: the module is safe if it's first in its route. It's unsafe after a handler that
// merges slashes in the way that Caddy's manual shows.
func TestModule(t *testing.T) {
	const (
		module = `{"handler": "webhooks"}`
		merge  = `{"handler": "rewrite", "path_regexp": [{"find": "/{2,}", "replace": "/"}]}`
		page   = `{"handler": "static_response", "body": "a page of the site"}`
	)
	for _, scope := range pathtest.Scopes {
		t.Run(fmt.Sprintf("first, AllScope %d", scope), func(t *testing.T) {
			service = pathtest.New(t, webhookcfg.Options{BasePath: "/hooks", AllScope: scope})
			url := serve(t, module, merge, page)
			if report := service.Check(t, url+"/hooks", nil); len(report.Failures) > 0 {
				t.Error(report)
			}
			service.ExpectEffects(t, url+"/hooks", pathtest.Tolerance{}, scope)
			if got := get(t, url+"/page"); got != "a page of the site" {
				t.Errorf("the page of the site is %q", got)
			}
		})
	}
	t.Run("after a rewrite", func(t *testing.T) {
		service = pathtest.New(t, webhookcfg.Options{BasePath: "/hooks"})
		url := serve(t, merge, module, page)
		isSlashes := func(f mounttest.Failure) bool { return f.Class == "slashes" }
		if report := service.Check(t, url+"/hooks", nil); !slices.ContainsFunc(report.Failures, isSlashes) {
			t.Errorf("the mount passes: %v", report)
		}
	})
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestReadme: the README shows the method that serves requests.
func TestReadme(t *testing.T) {
	_, rest, _ := strings.Cut(readFile(t, "caddy_test.go"), "// README\n")
	lines, _, found := strings.Cut(rest, "\n\n// end\n")
	if !found || !strings.Contains(readFile(t, "../../../examples/mounts/README.md"), lines) {
		t.Errorf("the README does not show\n%s", lines)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "\r\n", "\n")
}
