package linearizable

import "testing"

// Check plays the histories of the setting and fails the test if one of them is not
// linearizable, if so many are undecided or so many operations failed that little
// is known, and at any failure where the setting disturbs nothing. It calls open
// once; all the handles that open returns are used.
func Check(t testing.TB, setting Setting, open func(t testing.TB) []Store) {
	t.Helper()
	sum := setting.run(t, open(t))
	t.Log(sum)
	if sum.illegal > 0 {
		t.Errorf("history %d is not linearizable", sum.histories)
	}
	sum.doubt(t, setting)
}

// MustFail plays histories until one of them is not linearizable, and fails the
// test if none of the setting is. It is for stores that are known to be broken.
func MustFail(t testing.TB, setting Setting, open func(t testing.TB) []Store) {
	t.Helper()
	sum := setting.run(t, open(t))
	t.Log(sum)
	if sum.illegal == 0 {
		t.Error("a store that is not linearizable was never caught")
	}
	if setting.Disturb == nil && sum.failed > 0 {
		t.Errorf("%d operations failed, the first with: %v", sum.failed, sum.first)
	}
}
