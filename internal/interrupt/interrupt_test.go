package interrupt_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"example.com/go-webhookcfg/internal/interrupt"
)

// TestEach: a call that looks at its context three times is interrupted at each of them, and
// once not at all.
func TestEach(t *testing.T) {
	var got []int
	err := interrupt.Each(t.Context(), func(over context.Context) error {
		seen := 0
		for range 3 {
			if over.Err() == nil {
				seen++
			}
		}
		got = append(got, seen)
		return nil
	})
	if want := []int{0, 1, 2, 3}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v; error %v", got, want, err)
	}
	calls := 0
	err = interrupt.Each(t.Context(), func(over context.Context) error {
		calls++
		for range interrupt.Most {
			select {
			case <-over.Done():
				return nil
			default:
			}
		}
		return errors.New("not interrupted")
	})
	if err != nil || calls != interrupt.Most {
		t.Errorf("%d calls, error %v", calls, err)
	}
	broken := errors.New("broken")
	if err := interrupt.Each(t.Context(), func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
