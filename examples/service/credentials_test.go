package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/examples/internal/probes"
)

// TestSecretsInFiles: secrets are read from the files that the environment names. It's an
// error if one of these is missing.
func TestSecretsInFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("one two\n"), 0o440); err != nil {
		t.Fatal(err)
	}
	parsed := func(variables map[string]string) (config, error) {
		return parse(nil, func(name string) string { return variables[name] }, t.Output())
	}
	cfg, err := parsed(map[string]string{"MASTER_FILE": file, "STORE_FILE": file, "CLIENT": client})
	if err != nil || len(cfg.masters) != 2 || cfg.store != "one two" || len(cfg.clients) != 1 {
		t.Errorf("got %+v, %v", cfg, err)
	}
	if _, err := parsed(map[string]string{"MASTER_FILE": file + "x", "CLIENT": client}); err == nil || !strings.Contains(err.Error(), "MASTER_FILE") {
		t.Errorf("a file that is missing: %v", err)
	}
	if _, err := parsed(map[string]string{"PERSON": "ann:a-password"}); err == nil {
		t.Error("a person without a client is accepted")
	}
}

// TestCredentialFile: with the modes of a Kubernetes secret, a credential file is only used
// if you allow that. Its clients sign in, and its health shows.
func TestCredentialFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials")
	const text = "begin\nfiled:sha256:1ec1c26b50d5d3c58d9583181af8076655fe00756bf7285940ba3670f99fcba0\nend\n"
	if err := os.WriteFile(file, []byte(text), 0o440); err != nil {
		t.Fatal(err)
	}
	args := []string{"-store", "sqlite:" + filepath.Join(t.TempDir(), "service.db"), "-migrate", "-listen", "127.0.0.1:0", "-credentials", file}
	if err := run(t.Context(), args, environment, t.Output(), t.Output()); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("without -shared: %v", err)
	}
	service, metrics := start(t, append(args, "-shared")...)
	expect(t, callAs(t, "filed:s3cret", http.MethodGet, service+webhooks, ""), "200 ")
	expect(t, callAs(t, client, http.MethodGet, service+webhooks, ""), "401 ")
	expect(t, call(t, http.MethodGet, service+"/livez", ""), "200 ")
	expect(t, call(t, http.MethodGet, service+"/readyz", ""), "200 ")
	expect(t, call(t, http.MethodGet, service+"/healthz", ""), `200 {"credentials":"ok","store":"ok"}`)
	if got := figure(t, metrics, `webhook_healthy{part="credentials"}`); got != "1" {
		t.Errorf("the metric of its health is %q", got)
	}
}

// TestDrained: after SIGTERM the process is unready at once, and ends after the time that
// load balancers need to notice.
func TestDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{cfg: config{drain: time.Minute}, probes: probes.New(slog.New(slog.DiscardHandler))}
		s.probes.Start(http.NotFoundHandler())
		ready := func() bool {
			w := httptest.NewRecorder()
			s.probes.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			return w.Code == http.StatusOK
		}
		terminated, terminate := context.WithCancel(t.Context())
		ctx, end := s.drained(terminated)
		defer end()
		for _, step := range []struct {
			do           func()
			ready, ended bool
		}{
			{func() { time.Sleep(time.Hour) }, true, false},
			{terminate, false, false},
			{func() { time.Sleep(time.Minute - 1) }, false, false},
			{func() { time.Sleep(time.Nanosecond) }, false, true},
		} {
			step.do()
			synctest.Wait()
			if ready() != step.ready || (ctx.Err() != nil) != step.ended {
				t.Errorf("ready %v, ended %v, want %+v", ready(), ctx.Err(), step)
			}
		}
	})
}
