package lru_test

import (
	"math/rand/v2"
	"testing"

	"example.com/go-webhookcfg/internal/lru"
)

func wantKeys(t *testing.T, m *lru.Map[string, int], present, absent string) {
	t.Helper()
	if m.Len() != len(present) {
		t.Errorf("%d entries, want %d", m.Len(), len(present))
	}
	for _, key := range present {
		if _, ok := m.Get(string(key)); !ok {
			t.Errorf("%c is absent", key)
		}
	}
	for _, key := range absent {
		if _, ok := m.Get(string(key)); ok {
			t.Errorf("%c is present", key)
		}
	}
}

func TestEvictsLeastRecentlyUsed(t *testing.T) {
	m := lru.New[string, int](3)
	for i, key := range []string{"a", "b", "c"} {
		m.Put(key, i)
	}
	m.Get("a")
	m.Put("b", 10)
	m.Put("d", 3) // a and b were used since c was put
	wantKeys(t, m, "abd", "c")
	if v, _ := m.Get("b"); v != 10 {
		t.Errorf("b is %d, want 10", v)
	}
	m.Put("e", 4) // then a, b and d were looked up, and b again
	m.Put("f", 5)
	wantKeys(t, m, "bef", "ad")
}

func TestRemoveAndClear(t *testing.T) {
	m := lru.New[string, int](2)
	m.Put("a", 1)
	m.Put("b", 2)
	m.Remove("a")
	m.Remove("a")
	wantKeys(t, m, "b", "a")
	m.Put("c", 3)
	wantKeys(t, m, "bc", "a")
	m.Clear()
	wantKeys(t, m, "", "abc")
	m.Put("d", 4)
	wantKeys(t, m, "d", "abc")
}

// TestModel compares the map with a plain one, by random steps: it never holds more than
// its limit, and what it holds is what was put last.
func TestModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for limit := 1; limit < 20; limit++ {
		m, model := lru.New[int, int](limit), map[int]int{}
		for step := range 2000 {
			key := random.IntN(30)
			switch random.IntN(5) {
			case 0:
				m.Remove(key)
				delete(model, key)
			case 1, 2:
				m.Put(key, step)
				model[key] = step
				if got, ok := m.Get(key); got != step || !ok {
					t.Fatalf("limit %d, step %d: %d, %v right after Put", limit, step, got, ok)
				}
			default:
				got, ok := m.Get(key)
				if want, known := model[key]; ok && (!known || got != want) {
					t.Fatalf("limit %d, step %d: %d, want %d, %v", limit, step, got, want, known)
				}
			}
			if m.Len() > limit {
				t.Fatalf("%d entries, limit %d", m.Len(), limit)
			}
		}
	}
}

func TestGetDoesNotAllocate(t *testing.T) {
	m := lru.New[string, int](2)
	m.Put("a", 1)
	if n := testing.AllocsPerRun(100, func() { m.Get("a"); m.Get("b") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
