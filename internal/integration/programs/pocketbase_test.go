package programs_test

import (
	"fmt"
	"net"
	"testing"

	"example.com/go-webhookcfg/internal/pathtest"
	"example.com/go-webhookcfg/webhookcfg"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	_ "github.com/pocketbase/pocketbase/migrations" // of the tables of a new application
)

// servePocketBase serves a new PocketBase application until the test ends.
func servePocketBase(t *testing.T, h *webhookcfg.Handler, mount func(core.App, *webhookcfg.Handler)) (url string) {
	t.Helper()
	app := core.NewBaseApp(core.BaseAppConfig{DataDir: t.TempDir()})
	if err := app.Bootstrap(); err != nil {
		t.Fatal(err)
	}
	mount(app, h)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	app.OnServe().BindFunc(func(e *core.ServeEvent) error {
		e.Listener, e.InstallerFunc = listener, nil // the installer would open a browser
		e.App.Settings().Logs.MaxDays = 0           // it would write the log while its database is closed
		return e.Next()
	})
	ended := make(chan error, 1)
	go func() { ended <- apis.Serve(app, apis.ServeConfig{HttpAddr: listener.Addr().String()}) }()
	t.Cleanup(func() {
		if err := app.OnTerminate().Trigger(&core.TerminateEvent{App: app}); err != nil {
			t.Error(err)
		}
		_ = listener.Close() // still open if the application didn't start
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := app.ResetBootstrapState(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

// TestPocketBase: the handler is safe in front of the mux, which exists once the other hooks
// have run. As a route it's unsafe.
func TestPocketBase(t *testing.T) {
	for _, scope := range pathtest.Scopes {
		t.Run(fmt.Sprintf("before the mux, AllScope %d", scope), func(t *testing.T) {
			s := pathtest.New(t, webhookcfg.Options{BasePath: "/hooks", AllScope: scope})
			url := servePocketBase(t, s.Handler(), func(app core.App, h *webhookcfg.Handler) {
				// README
				app.OnServe().BindFunc(func(e *core.ServeEvent) error {
					err := e.Next() // makes the mux
					e.Server.Handler = h.Before(e.Server.Handler)
					return err
				})
				// end
			})
			if report := s.Check(t, url+"/hooks", nil); len(report.Failures) > 0 {
				t.Error(report)
			}
			s.ExpectEffects(t, url+"/hooks", pathtest.Tolerance{}, scope)
			expectPage(t, url+"/api/health")
		})
	}
	t.Run("route", func(t *testing.T) {
		s := pathtest.New(t, webhookcfg.Options{BasePath: "/hooks"})
		expectUnsafe(t, s, servePocketBase(t, s.Handler(), func(app core.App, h *webhookcfg.Handler) {
			app.OnServe().BindFunc(func(e *core.ServeEvent) error {
				e.Router.Any("/hooks/{path...}", apis.WrapStdHandler(h))
				return e.Next()
			})
		})+"/hooks")
	})
}
