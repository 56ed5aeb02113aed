package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

const (
	path   = "/api/v1/configure/configure-webhook"
	client = "acme:a-secret-of-acme-for-a-first-try"
)

func environment(name string) string {
	if name == "CLIENT" {
		return client
	}
	return ""
}

// start runs the program until the end of the test, and returns its output lines.
func start(t *testing.T, args ...string) *bufio.Scanner {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"-listen", "127.0.0.1:0"}, args...), environment, writer, io.Discard)
		writer.CloseWithError(err)
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		_ = reader.Close()
		if err := <-ended; err != nil {
			t.Errorf("%v: %v", args, err)
		}
	})
	return bufio.NewScanner(reader)
}

// next returns the next line of the program.
func next(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	if !lines.Scan() {
		t.Fatalf("no more lines: %v", lines.Err())
	}
	return lines.Text()
}

// call sends one request and returns "status body".
func call(t *testing.T, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	id, secret, _ := strings.Cut(client, ":")
	r.SetBasicAuth(id, secret)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(resp.StatusCode, " ", string(text))
}

// TestWalkThrough follows the documentation of the command: two replicas and a sender over
// one database.
func TestWalkThrough(t *testing.T) {
	name := "sqlite:" + filepath.Join(t.TempDir(), "webhooks.db")
	one := "http://" + next(t, start(t, "-store", name, "-migrate")) + path
	two := "http://" + next(t, start(t, "-store", name)) + path
	sender := start(t, "-store", name, "-watch", "acme/e1", "-max-stale", "200ms")
	if got := next(t, sender); got != "nowhere (none)" {
		t.Fatalf("initially the sender sends %s", got)
	}
	for _, step := range []struct{ method, url, body, sender, read string }{
		{http.MethodPost, one, `{"webhook_url":"https://all.example.com/t0ken"}`, "to https://all.example.com (base)", `"source":"base"`},
		{http.MethodPost, two, `{"endpoint_id":"e1","webhook_url":"https://e1.example.com/t0ken"}`, "to https://e1.example.com (override)", `"source":"override"`},
		{http.MethodDelete, one + "/e1", "", "nowhere (off)", `"source":"off"`},
		{http.MethodDelete, two, "", "nowhere (none)", `"source":"none"`},
	} {
		if got := call(t, step.method, step.url, step.body); !strings.HasPrefix(got, "200 ") {
			t.Fatalf("%s %s: %s", step.method, step.url, got)
		}
		for _, replica := range []string{one, two} {
			if got := call(t, http.MethodGet, replica+"/e1", ""); !strings.Contains(got, step.read) {
				t.Errorf("after %s %s %s, %s reads %s", step.method, step.url, step.body, replica, got)
			}
		}
		if got := next(t, sender); got != step.sender {
			t.Errorf("after %s %s %s the sender sends %s", step.method, step.url, step.body, got)
		}
	}
}

func TestBadArguments(t *testing.T) {
	there := "sqlite:" + filepath.Join(t.TempDir(), "webhooks.db")
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"no store", nil, "want sqlite:PATH"},
		{"no engine", []string{"-store", "webhooks.db"}, "want sqlite:PATH"},
		{"unknown engine", []string{"-store", "redis:127.0.0.1"}, `unknown engine "redis"`},
		{"bad data source name", []string{"-store", "mysql:app:s3cret@nowhere"}, "rejected by the mysql driver"},
		{"a missing directory", []string{"-store", "sqlite:" + filepath.Join(t.TempDir(), "none", "webhooks.db"), "-migrate"}, "unable to open"},
		{"connection refused", []string{"-store", "postgres://app:s3cret@127.0.0.1:1/app", "-migrate"}, "connect"},
		{"no entity to watch", []string{"-store", there, "-watch", "acme"}, "want CLIENT/ENTITY"},
		{"too fresh", []string{"-store", there, "-watch", "acme/e1", "-max-stale", "1ns"}, "MaxStale 1ns"},
		{"an argument", []string{"-store", there, "serve"}, `unexpected argument "serve"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, log bytes.Buffer
			err := run(t.Context(), tt.args, environment, &out, &log)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if text := fmt.Sprint(err, out.String(), log.String()); strings.Contains(text, "s3cret") {
				t.Errorf("the password shows: %s", text)
			}
		})
	}
	empty := func(string) string { return "" }
	if err := run(t.Context(), []string{"-store", there}, empty, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "CLIENT") {
		t.Errorf("without a client: %v", err)
	}
}
