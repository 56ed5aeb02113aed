// Package support_test replays ten support cases: a client whose notifications don't arrive
// finds out why and repairs that alone, in the page of examples/service with Chromium, and from
// Go.
package support_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "`directory` to write a screenshot of every page to")

const client = "acme"

var (
	chromium context.Context // that all tests share
	program  string          // the path of the service
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "support")
	if err == nil {
		defer os.RemoveAll(dir)
		err = prepare(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if testing.Short() {
		return m.Run()
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.WindowSize(900, 1000), chromedp.Flag("disable-gpu", true), chromedp.WSURLReadTimeout(2*time.Minute))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	browser, closeBrowser := chromedp.NewContext(allocator)
	defer closeBrowser()
	if err := chromedp.Run(browser); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	chromium = browser
	return m.Run()
}

// prepare builds the service and makes an authority that it trusts.
func prepare(dir string) error {
	text, err := newAuthority()
	if err != nil {
		return err
	}
	roots := filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(roots, text, 0o600); err != nil {
		return err
	}
	if err := os.Setenv("SSL_CERT_FILE", roots); err != nil {
		return err
	}
	program = filepath.Join(dir, "service")
	cmd := exec.Command("go", "build", "-o", program, ".")
	cmd.Dir = "../../../examples/service"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// account is a client with a way to repair its webhooks.
type account interface {
	// set sets the webhook of all entities, or of one, before the case starts.
	set(entity, url string)
	// unset turns an entity off, before the case starts.
	unset(entity string)
	// change makes a change of an entity, and returns the notification.
	change(entity string) (body string)
	// key returns the signing key, before the case starts.
	key() string

	// sees waits until the client sees this reason, and that notifications are missing.
	sees(reason string)
	// The rest is how the client repairs it, starting from its overview.
	readKey() string
	test()
	tryAndSetAll(url string)
	setAll(url string)
	setEntity(entity, url string)
	sendAllAgain()
	sendAgain(entity string)
	// clicks returns how many clicks all that took, with the one that signs in, or 0 if there's
	// nothing to click.
	clicks() int
}

// body is the notification of a change.
func body(entity string, version int64) string {
	return fmt.Sprintf(`{"data":{"id":%q,"version":%d},"type":"module.updated"}`, entity, version)
}

// supportCase is something that goes wrong.
type supportCase struct {
	name   string
	spoil  func(a account, r *receiver)
	reason string
	// repair repairs it. What the client does at its own server takes no clicks.
	repair func(a account, r *receiver)
	// clicks is how many clicks that takes at most, from the page that asks to sign in to the one
	// that says that all are sent again.
	clicks int
}

func status(code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return true }
}

// works repairs a server that was at fault, tests it and sends again what was missed.
func works(repair func(r *receiver)) func(a account, r *receiver) {
	return func(a account, r *receiver) {
		repair(r)
		a.test()
		a.sendAllAgain()
	}
}

var cases = []supportCase{
	{"dead host", func(a account, r *receiver) { a.set("", r.url()); r.stop() }, "unreachable", works((*receiver).start), 4},
	{"gone after a deploy", func(a account, r *receiver) {
		r.set(func() { r.fault = status(http.StatusGone) })
		a.set("", r.url())
	}, "gone", works(func(r *receiver) { r.set(func() { r.fault = nil }) }), 4},
	{"wrong signing key", func(a account, r *receiver) {
		r.set(func() { r.key = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" })
		a.set("", r.url())
	}, "status", func(a account, r *receiver) {
		key := a.readKey()
		r.set(func() { r.key = key })
		a.test()
		a.sendAllAgain()
	}, 6},
	{"expired certificate", func(a account, r *receiver) {
		r.secure()
		r.set(func() { r.expired = true })
		a.set("", r.url())
	}, "unreachable", works(func(r *receiver) { r.set(func() { r.expired = false }) }), 4},
	{"redirect", func(a account, r *receiver) {
		r.set(func() {
			r.fault = func(w http.ResponseWriter, req *http.Request) bool {
				if req.URL.Path == "/new" {
					return false
				}
				http.Redirect(w, req, "/new", http.StatusPermanentRedirect)
				return true
			}
		})
		a.set("", r.url())
	}, "redirect", func(a account, r *receiver) {
		a.setAll(r.server.URL + "/new")
		a.sendAllAgain()
	}, 5},
	{"firewall", func(a account, r *receiver) {
		r.set(func() { r.isCut = true })
		a.set("", r.url())
	}, "unreachable", works(func(r *receiver) { r.set(func() { r.isCut = false }) }), 4},
	{"outage", func(a account, r *receiver) {
		r.set(func() { r.fault = status(http.StatusServiceUnavailable) })
		a.set("", r.url())
	}, "throttled", works(func(r *receiver) { r.set(func() { r.fault = nil }) }), 4},
	{"URL typed wrong", func(a account, r *receiver) {
		r.set(func() {
			r.fault = func(w http.ResponseWriter, req *http.Request) bool {
				if req.URL.Path != "/in" {
					http.NotFound(w, req)
				}
				return req.URL.Path != "/in"
			}
		})
		a.set("", r.server.URL+"/im")
	}, "status", func(a account, r *receiver) {
		a.tryAndSetAll(r.url())
		a.sendAllAgain()
	}, 6},
	{"turned off by mistake", func(a account, r *receiver) {
		a.set("", r.url())
		a.change("m1") // so that the service knows it
		a.unset("m1")
	}, "", func(a account, r *receiver) {
		a.setEntity("m1", r.url())
		a.sendAgain("m1")
	}, 5},
	{"too slow", func(a account, r *receiver) {
		r.set(func() {
			r.fault = func(_ http.ResponseWriter, req *http.Request) bool {
				_, _ = io.Copy(io.Discard, req.Body) // or the server wouldn't notice that the sender gives up
				<-req.Context().Done()
				return true
			}
		})
		a.set("", r.url())
	}, "unreachable", works(func(r *receiver) { r.set(func() { r.fault = nil }) }), 4},
}

// schedule makes a notification wait for an hour after its first attempt.
const schedule = "1h,1h"

// missing is how many notifications a client misses.
const missing = 3

// TestSupport: in each case, the client finds out what is wrong, repairs it alone, and gets what
// it missed, with as many clicks at most as the case says.
func TestSupport(t *testing.T) {
	for _, c := range cases {
		for name, open := range map[string]func(t *testing.T) account{"page": openPage, "Go": openGo} {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				r, a := newReceiver(t), open(t)
				key := a.key()
				r.set(func() { r.key = key })
				c.spoil(a, r)
				var missed []string
				for range missing {
					missed = append(missed, a.change("m1"))
				}
				a.sees(c.reason)
				if n := r.got(missed); n > 0 {
					t.Fatalf("%d notifications have arrived", n)
				}
				c.repair(a, r)
				for deadline := time.Now().Add(30 * time.Second); r.got(missed) < len(missed); time.Sleep(20 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("%d of %d notifications have arrived", r.got(missed), len(missed))
					}
				}
				next := a.change("m1")
				for deadline := time.Now().Add(10 * time.Second); r.got([]string{next}) == 0; time.Sleep(20 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatal("the next notification hasn't arrived")
					}
				}
				if n := a.clicks(); n > c.clicks {
					t.Errorf("%d clicks, want %d", n, c.clicks)
				} else {
					t.Logf("%d of %d clicks", n, c.clicks)
				}
			})
		}
	}
}
