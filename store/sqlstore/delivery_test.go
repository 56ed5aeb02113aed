package sqlstore_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// gone is a delivery with a different value in each field.
func gone() deliver.Record {
	return deliver.Record{
		Since: time.UnixMicro(1), Reason: deliver.ReasonGone, Stopped: true,
		LastSuccess: time.UnixMicro(2), LastFailure: time.Unix(0, 4999), FirstFailure: time.UnixMicro(3),
	}
}

func save(s *sqlstore.Store) error {
	return s.SaveDelivery(context.Background(), "acme", webhookcfg.Entity("e1"), gone())
}

func load(s *sqlstore.Store) (deliver.Record, error) {
	return s.LoadDelivery(context.Background(), "acme", webhookcfg.Entity("e1"))
}

// isLoad reports whether a call is the query of LoadDelivery.
func isLoad(call string) bool {
	return strings.HasPrefix(call, "SELECT") && strings.Contains(call, "wh_delivery")
}

// TestSaveDelivery: a save is one statement without a transaction. Names are bytes, the base
// has an empty entity, and the later time counts.
func TestSaveDelivery(t *testing.T) {
	onlyFailed := gone()
	onlyFailed.LastSuccess, onlyFailed.FirstFailure = time.Time{}, time.Time{}
	for _, tt := range []struct {
		scope webhookcfg.Scope
		d     deliver.Record
		want  string
	}{
		{webhookcfg.All(), gone(), `"a\xff" "" 1 1 5 2 4 3 4`},
		{webhookcfg.Entity("\x00"), onlyFailed, `"a\xff" "\x00" 1 1 5 -62135596800000000 4 -62135596800000000 4`},
		{webhookcfg.Entity("e1"), deliver.Record{LastSuccess: time.UnixMicro(9), LastFailure: time.UnixMicro(8)}, `"a\xff" "e1" -62135596800000000 0 0 9 8 -62135596800000000 9`},
	} {
		for _, dialect := range dialects() {
			var got []string
			s, f := openFake(t, dialect, nil, func(_ string, args []driver.NamedValue) (resultRows, error) {
				for _, arg := range args[:min(len(args), 9)] { // MySQL repeats them
					switch v := arg.Value.(type) {
					case []byte:
						got = append(got, fmt.Sprintf("%q", v))
					default:
						got = append(got, fmt.Sprint(v))
					}
				}
				return nil, nil
			})
			if err := s.SaveDelivery(t.Context(), "a\xff", tt.scope, tt.d); err != nil {
				t.Fatal(err)
			}
			if f.shape() != "connect INSERT" || strings.Join(got, " ") != tt.want {
				t.Errorf("%s: %s of %s, want %s", dialect, f.shape(), got, tt.want)
			}
		}
	}
}

// TestLoadDelivery: a load returns each field, and nothing if there's no row. An unknown
// state or reason is an error.
func TestLoadDelivery(t *testing.T) {
	want := gone()
	want.LastFailure = time.UnixMicro(4)
	for _, tt := range []struct {
		row   []driver.Value
		want  deliver.Record
		valid bool
	}{
		{[]driver.Value{false, int64(1), int64(1), int64(5), int64(2), int64(4), int64(3)}, want, true},
		{[]driver.Value{false, int64(-62135596800000000), int64(0), int64(0), int64(-62135596800000000), int64(-62135596800000000), int64(-62135596800000000)}, deliver.Record{}, true},
		{[]driver.Value{false, nil, nil, nil, nil, nil, nil}, deliver.Record{}, true},
		{[]driver.Value{false, int64(1), int64(2), int64(5), int64(2), int64(4), int64(3)}, deliver.Record{}, false},
		{[]driver.Value{false, int64(1), int64(-1), int64(5), int64(2), int64(4), int64(3)}, deliver.Record{}, false},
		{[]driver.Value{false, int64(1), int64(1), int64(8), int64(2), int64(4), int64(3)}, deliver.Record{}, false},
		{[]driver.Value{false, int64(1), int64(1), int64(-1), int64(2), int64(4), int64(3)}, deliver.Record{}, false},
	} {
		for _, dialect := range dialects() {
			s, f := openFake(t, dialect, nil, func(call string, _ []driver.NamedValue) (resultRows, error) {
				if isLoad(call) {
					return resultRows{tt.row}, nil
				}
				return nil, nil
			})
			got, err := load(s)
			if (err == nil) != tt.valid || !sameDelivery(got, tt.want) || f.shape() != "connect SELECT" {
				t.Errorf("%s: %s of %v: %+v, want %+v: %v", dialect, f.shape(), tt.row, got, tt.want, err)
			}
		}
	}
}

// TestDeliveryReasons: you load the reason that you saved, and can't save an unknown one. Each
// reason that clients can see has a number.
func TestDeliveryReasons(t *testing.T) {
	numbers := map[deliver.Reason]int64{
		"": 0, deliver.ReasonUnreachable: 1, deliver.ReasonRedirect: 2, deliver.ReasonThrottled: 3, deliver.ReasonStatus: 4,
		deliver.ReasonGone: 5, deliver.ReasonPolicy: 6, deliver.ReasonExpired: 7, deliver.ReasonBusy: -1, "other": -1,
	}
	words := make(map[string]bool)
	for reason := range numbers {
		words[reason.Public()] = true
	}
	_, visible := webhookcfg.DeliveryWords()
	for _, word := range visible {
		if !words[word] {
			t.Errorf("no reason with the word %q has a number: append it to deliveryReasons", word)
		}
	}
	for reason, number := range numbers {
		s, f := openFake(t, sqlstore.PostgreSQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
			if isLoad(call) {
				return resultRows{{false, int64(1), int64(0), number, int64(2), int64(4), int64(3)}}, nil
			}
			if strings.HasPrefix(call, "INSERT") && args[4].Value != number {
				t.Errorf("%q is saved as %v, want %d", reason, args[4].Value, number)
			}
			return nil, nil
		})
		err := s.SaveDelivery(t.Context(), "acme", webhookcfg.All(), deliver.Record{Reason: reason})
		if number < 0 {
			if !errors.Is(err, webhookcfg.ErrInvalidArgument) || f.count("INSERT") > 0 {
				t.Errorf("%q: %s: %v", reason, f.shape(), err)
			}
			continue
		}
		if got, loadErr := load(s); got.Reason != reason || errors.Join(err, loadErr) != nil {
			t.Errorf("%q is loaded as %q: %v, %v", reason, got.Reason, err, loadErr)
		}
	}
}

func sameDelivery(a, b deliver.Record) bool {
	return a.Stopped == b.Stopped && a.Reason == b.Reason && a.Since.Equal(b.Since) && a.LastSuccess.Equal(b.LastSuccess) &&
		a.LastFailure.Equal(b.LastFailure) && a.FirstFailure.Equal(b.FirstFailure)
}

// TestDeliveryErrors: loads and saves are tried again after a proven rollback. Any other
// error is returned as it is, because a save has no outcome to find out.
func TestDeliveryErrors(t *testing.T) {
	postgres, mysql, sqlite := sqlstore.PostgreSQL(), sqlstore.MySQL(), sqlstore.SQLite()
	const always = 1 << 30
	for _, tt := range []struct {
		dialect sqlstore.Dialect
		err     error
		times   int
		tries   int
	}{
		{postgres, stateError("40001"), 2, 3},
		{postgres, stateError("40P01"), 1, 2},
		{postgres, stateError("40001"), always, 100},
		{postgres, stateError("42501"), always, 1}, // a missing privilege
		{postgres, stateError("25006"), always, 1}, // a standby
		{postgres, stateError("57P01"), always, 1},
		{postgres, io.ErrUnexpectedEOF, always, 1},
		{mysql, errDeadlock, 1, 2},
		{mysql, errLockTimeout, 1, 2},
		{mysql, &numberError{1290, "The server is running with --read-only"}, always, 1},
		{mysql, errors.New("invalid connection"), always, 1},
		{sqlite, codeError(5), 3, 4},
		{sqlite, codeError(13), always, 1},
		{sqlite, codeError(10), always, 1},
		{sqlite, context.DeadlineExceeded, always, 1},
	} {
		for name, call := range map[string]struct {
			do func(*sqlstore.Store) error
			at string
		}{
			"load": {func(s *sqlstore.Store) error { return second(load(s)) }, "SELECT"},
			"save": {save, "INSERT INTO wh_delivery"},
		} {
			t.Run(fmt.Sprintf("%s/%s/%v/%d", tt.dialect, name, tt.err, tt.tries), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, f := openFake(t, tt.dialect, nil, failing(call.at, tt.err, tt.times))
					err := call.do(s)
					if (err == nil) != (tt.times < always) || err != nil && (!errors.Is(err, tt.err) || outcomeOf(err) != notMade) {
						t.Error(err)
					}
					if f.count(call.at) != tt.tries || f.count("begin")+f.count("commit") > 0 {
						t.Errorf("%d tries, want %d: %s", f.count(call.at), tt.tries, f.shape())
					}
					if f.opened(0) != 1 {
						t.Errorf("%d connections are open", f.opened(0))
					}
				})
			})
		}
	}
}

// TestSweepDeliveries: a sweep deletes deliveries without an attempt in 90 days, in parts, and
// spends the rest of its limit on overrides.
func TestSweepDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const old = 700
		for limit, want := range map[int]struct{ parts, deliveries, overrides int }{
			100: {1, 100, 0}, 600: {2, 600, 0}, old: {2, old, 0}, old + 2: {3, old, 2}, 2 * old: {3, old, 3},
		} {
			left := old
			o := &obsoleteRows{rows: map[string]int{"acme": 3}}
			s, f := openFake(t, sqlstore.MySQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
				if !strings.HasPrefix(call, "DELETE FROM wh_delivery") {
					return o.on(call, args)
				}
				if want := time.Now().Add(-90 * 24 * time.Hour).UnixMicro(); args[0].Value != want {
					t.Errorf("deletes what is before %d, want %d", args[0].Value, want)
				}
				n := min(int64(left), args[1].Value.(int64))
				left -= int(n)
				return nil, affected(n)
			})
			removed, err := s.Sweep(t.Context(), limit)
			parts, overrides := f.count("DELETE FROM wh_delivery"), 3-o.rows["acme"]
			if err != nil || removed != want.deliveries+want.overrides || old-left != want.deliveries || overrides != want.overrides || parts != want.parts {
				t.Errorf("a sweep of %d removed %d: %d deliveries in %d parts and %d overrides: %v", limit, removed, old-left, parts, overrides, err)
			}
		}
	})
}

// TestSweepsAreIndependent: a failure among the deliveries doesn't keep overrides from being
// swept, nor the other way round.
func TestSweepsAreIndependent(t *testing.T) {
	denied := stateError("42501")
	for _, broken := range []string{"DELETE FROM wh_delivery", "DELETE FROM wh_override"} {
		o := &obsoleteRows{rows: map[string]int{"acme": 1}}
		s, f := openFake(t, sqlstore.PostgreSQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
			if strings.HasPrefix(call, broken) {
				return nil, denied
			}
			return o.on(call, args)
		})
		removed, err := s.Sweep(t.Context(), 10)
		if !errors.Is(err, denied) || f.count("DELETE FROM wh_delivery") != 1 || f.count("DELETE FROM wh_override") != 1 {
			t.Errorf("removed %d by %s: %v", removed, f.shape(), err)
		}
	}
}

// TestOneSaveOfAClient: while a save waits for its row, the client's other saves take no
// connection. Neither the client's changes nor other clients' saves wait for it.
func TestOneSaveOfAClient(t *testing.T) {
	for _, dialect := range []sqlstore.Dialect{sqlstore.PostgreSQL(), sqlstore.MySQL()} {
		synctest.Test(t, func(t *testing.T) {
			unlocked := make(chan struct{})
			var locked atomic.Bool
			locked.Store(true)
			s, f := openFake(t, dialect, nil, func(call string, args []driver.NamedValue) (resultRows, error) {
				if strings.HasPrefix(call, "INSERT INTO wh_delivery") && string(args[0].Value.([]byte)) == "acme" && locked.Load() {
					<-unlocked
				}
				return nil, nil
			})
			const waiting = 20
			results := make(chan error, waiting)
			for range waiting {
				go func() { results <- save(s) }()
			}
			synctest.Wait()
			if n := f.count("connect"); n != 1 {
				t.Errorf("%s: %d connections", dialect, n)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := s.SaveDelivery(ctx, "acme", webhookcfg.All(), gone()); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: one more: %v", dialect, err)
			}
			if err := s.Apply(t.Context(), set()); err != nil {
				t.Errorf("%s: a change: %v", dialect, err)
			}
			if err := s.SaveDelivery(t.Context(), "other", webhookcfg.All(), gone()); err != nil {
				t.Errorf("%s: another client: %v", dialect, err)
			}
			locked.Store(false)
			close(unlocked)
			for range waiting {
				if err := <-results; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestOneWriterSaves: with SQLite a save waits for a change, and its wait ends with the
// context.
func TestOneWriterSaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, f := openFake(t, sqlstore.SQLite(), nil, func(call string, _ []driver.NamedValue) (resultRows, error) {
			if call == "commit" {
				<-release
			}
			return nil, nil
		})
		first := make(chan error, 1)
		go func() { first <- s.Apply(context.Background(), set()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.SaveDelivery(ctx, "other", webhookcfg.All(), gone()); !errors.Is(err, context.DeadlineExceeded) || f.count("connect") != 1 {
			t.Errorf("while another writes: %s: %v", f.shape(), err)
		}
		close(release)
		if err := errors.Join(<-first, save(s)); err != nil {
			t.Error(err)
		}
	})
}
