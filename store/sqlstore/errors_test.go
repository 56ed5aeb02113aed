package sqlstore_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// rowError is a driver's error that quotes a row, also in a field that isn't in its text.
type rowError struct{ Message, Detail string }

func (e rowError) Error() string { return e.Message }

// TestErrorsRedactURL: no error shows more of the URL than its host, even if a server or a
// driver quotes it.
func TestErrorsRedactURL(t *testing.T) {
	const secret = "/hooks/T0KEN-abcdefghijkl?sig=0123456789"
	for _, whole := range []string{
		"https://hooks.example.com" + secret,
		"https://user:T0KEN-abcdefghijkl@hooks.example.com",
		"HTTPS://Hooks.Example.com:8443" + secret,
	} {
		c := webhookcfg.SetChange("acme", webhookcfg.Entity("e1"), egress.NewURL(whole))
		for _, text := range []string{
			"row contains (acme, " + whole + ")",
			"row contains " + strconv.Quote(whole),
			`row contains \x` + hex.EncodeToString([]byte(whole)),
			`row contains \x` + strings.ToUpper(hex.EncodeToString([]byte(whole))),
			"row contains " + whole[:len(whole)-12] + "…",
			"row contains … " + whole[len(whole)-14:],
			"row contains " + strings.ToUpper(whole),
		} {
			for _, at := range []string{"WITH", "commit", "connect"} {
				cause := rowError{text, "Failing row contains " + whole}
				s, _ := openFake(t, sqlstore.PostgreSQL(), nil, failing(at, cause, 1<<30))
				err := s.Apply(t.Context(), c)
				shown := strings.ToLower(fmt.Sprintf("%v %+v %#v %s %q", err, err, err, err, err))
				for _, part := range []string{"t0ken", "abcdefg", "0123456789", "6162636465", "3031323334"} {
					if strings.Contains(shown, part) {
						t.Errorf("%s: %s", text, shown)
					}
				}
				var found rowError
				if !errors.As(err, &found) || found != cause {
					t.Errorf("%v does not wrap its cause", err)
				}
				if mentioned := strings.Contains(err.Error(), sqlstore.ErrOutcomeUnknown.Error()); mentioned != (at == "commit") {
					t.Errorf("%s: %v mentions an unknown outcome: %v", at, err, mentioned)
				}
			}
		}
	}
}

// codedError is an error with a server's code.
type codedError struct {
	error
	state string
	code  int
}

func (e codedError) SQLState() string { return e.state }
func (e codedError) Code() int        { return e.code }

// TestErrorsKeepCodes: an error that quotes the URL keeps the server's code.
func TestErrorsKeepCodes(t *testing.T) {
	url := set().URL.Reveal()
	for _, tt := range []struct {
		dialect sqlstore.Dialect
		write   string // a statement
		cause   error
		want    string
	}{
		{sqlstore.PostgreSQL(), "WITH", codedError{errors.New("row " + url), "23514", 0}, "(SQLSTATE 23514)"},
		{sqlstore.MySQL(), "INSERT", &numberError{1406, "Data too long: " + url}, "(error 1406)"},
		{sqlstore.SQLite(), "INSERT", codedError{errors.New("row " + url), "", 19 | 3<<8}, "(result code 19)"},
		{sqlstore.PostgreSQL(), "WITH", codedError{errors.New("row " + url), url[:20], 0}, "quotes the URL"},
	} {
		for _, at := range []string{tt.write, "commit"} {
			s, _ := openFake(t, tt.dialect, nil, failing(at, tt.cause, 1<<30))
			err := s.Apply(t.Context(), set())
			if !strings.HasSuffix(fmt.Sprint(err), tt.want) || strings.Contains(err.Error(), url[:20]) {
				t.Errorf("%s, %s: %v, want %s", tt.dialect, at, err, tt.want)
			}
		}
	}
}

// TestErrorsKeepOtherTexts: error texts that don't quote the URL stay as they are.
func TestErrorsKeepOtherTexts(t *testing.T) {
	refusal := errors.New("dial tcp 127.0.0.1:5432: connect: connection refused")
	s, _ := openFake(t, sqlstore.PostgreSQL(), nil, failing("connect", refusal, 1<<30))
	for _, err := range []error{
		s.Apply(t.Context(), set()), s.Apply(t.Context(), unset()), s.Migrate(t.Context()),
		second(s.Resolve(t.Context(), "acme", "e1")), second(s.List(t.Context(), "acme", "", 1)),
		second(s.Versions(t.Context(), []string{"acme"})), second(s.Sweep(t.Context(), 1)),
		second(s.LoadDelivery(t.Context(), "acme", webhookcfg.All())), s.SaveDelivery(t.Context(), "acme", webhookcfg.All(), deliver.Record{}),
	} {
		if !errors.Is(err, refusal) || !strings.Contains(err.Error(), refusal.Error()) || !strings.HasPrefix(err.Error(), "sqlstore: ") {
			t.Errorf("got %v", err)
		}
	}
}
