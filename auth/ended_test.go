package auth_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestEndedSecretInLog: the log tells a secret that has ended from a wrong one, and the
// response doesn't.
func TestEndedSecretInLog(t *testing.T) {
	f, err := auth.OpenCountedFile(new(auth.Work), writeFile(t,
		sha256Line("acme", "old")+" name=2019 until=2020-01-02T05:04:05+02:00",
		sha256Line("acme", "new")+" name=2020",
		auth.CheapPBKDF2Line("human", "old", 600_000)+" name=winter until=2020-01-02T03:04:05Z",
	), nil)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	v := mustCache(t, mustThrottle(t, f, nil), nil)
	h := hooktest.NewHandler(t, nowhere{}, v, &webhookcfg.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	respond := func(id, secret string) string {
		log.Reset()
		r, w := httptest.NewRequest("DELETE", "/api/v1/configure/configure-webhook/e1", nil), httptest.NewRecorder()
		r.SetBasicAuth(id, secret)
		h.ServeHTTP(w, r.WithContext(from(t, "192.0.2.1")))
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%s: status %d", id, w.Code)
		}
		return w.Body.String()
	}
	wrong := respond("acme", "wrong")
	if strings.Contains(log.String(), "ended") {
		t.Errorf("a wrong secret is logged as %s", &log)
	}
	for _, tt := range [][2]string{{"acme", "2019"}, {"human", "winter"}} {
		if got := respond(tt[0], "old"); got != wrong {
			t.Errorf("%s: response %s, want %s", tt[0], got, wrong)
		}
		if want := `auth: secret \"` + tt[1] + `\" ended at 2020-01-02T03:04:05Z`; !strings.Contains(log.String(), want) {
			t.Errorf("%s: logged %s, want %s", tt[0], &log, want)
		}
	}
}
