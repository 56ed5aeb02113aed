package lru_test

import (
	"math/rand/v2"
	"slices"
	"strings"
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

// TestNext: Next returns the least recently used key of the owner with the most.
func TestNext(t *testing.T) {
	m := lru.NewShared[string, int](10, func(key string) uint64 { return uint64(key[0]) })
	if key, ok := m.Next(); ok {
		t.Errorf("%q of an empty map", key)
	}
	for _, key := range []string{"a1", "b1", "b2", "b3", "a2"} {
		m.Put(key, 0)
	}
	m.Get("b1")
	for _, want := range []string{"b2", "a1", "b3", "a2", "b1"} {
		key, ok := m.Next()
		if key != want || !ok {
			t.Errorf("%q, %t, want %q", key, ok, want)
		}
		m.Remove(key)
	}
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

// TestModel compares the map with a list of its keys in the order of their use, by random
// steps: what it holds, and what it evicts. It remembers no owner without an entry.
func TestModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for limit := 1; limit < 20; limit++ {
		for _, owners := range []int{1, 2, 5, 30} {
			owner := func(key int) uint64 { return uint64(key % owners) }
			m := lru.NewShared[int, int](limit, owner)
			values, used, last := map[int]int{}, []int(nil), map[uint64]int{}
			for step := range 1000 {
				key := random.IntN(30)
				use := func() {
					used = append(slices.DeleteFunc(used, func(k int) bool { return k == key }), key)
					last[owner(key)] = step
				}
				value, known := values[key]
				if random.IntN(100) == 0 {
					m.Clear()
					clear(values)
					used = nil
					continue
				}
				switch random.IntN(5) {
				case 0:
					m.Remove(key)
					delete(values, key)
					used = slices.DeleteFunc(used, func(k int) bool { return k == key })
				case 1, 2:
					m.Put(key, step)
					values[key] = step
					use()
					if len(values) > limit {
						evicted := toEvict(used, owner, last)
						delete(values, evicted)
						used = slices.DeleteFunc(used, func(k int) bool { return k == evicted })
					}
				default:
					if got, ok := m.Get(key); got != value || ok != known {
						t.Fatalf("limit %d, %d owners, step %d: %d, %v, want %d, %v", limit, owners, step, got, ok, value, known)
					}
					if known {
						use()
					}
				}
				if m.Len() != len(values) {
					t.Fatalf("limit %d, %d owners, step %d: %d entries, want %d", limit, owners, step, m.Len(), len(values))
				}
			}
			present := map[uint64]bool{}
			for key := range values {
				present[owner(key)] = true
			}
			if m.Owners() != len(present) {
				t.Fatalf("limit %d, %d owners: remembers %d owners, want %d", limit, owners, m.Owners(), len(present))
			}
		}
	}
}

// toEvict returns the least recently used key of the owner with the most and, of several,
// of the one that was used least recently.
func toEvict(used []int, owner func(int) uint64, last map[uint64]int) int {
	count := map[uint64]int{}
	for _, key := range used {
		count[owner(key)]++
	}
	best := used[0]
	for _, key := range used {
		if a, b := owner(key), owner(best); count[a] > count[b] || count[a] == count[b] && last[a] < last[b] {
			best = key
		}
	}
	return best
}

func TestGetDoesNotAllocate(t *testing.T) {
	m := lru.New[string, int](2)
	m.Put("a", 1)
	if n := testing.AllocsPerRun(100, func() { m.Get("a"); m.Get("b") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestEvictsFromTheLargestOwner: a key's owner is its first letter.
func TestEvictsFromTheLargestOwner(t *testing.T) {
	tests := []struct {
		name            string
		uses            []string // a question mark is a lookup, a minus sign a removal
		present, absent string
	}{
		{"an owner displaces itself", []string{"a1", "b1", "b2", "b3", "b4"}, "a1 b3 b4", "b1 b2"},
		{"also entries that were used since", []string{"a1", "b1", "b2", "b1?", "b3", "c1"}, "a1 b3 c1", "b1 b2"},
		{"its own oldest first", []string{"b1", "b2", "a1", "b1?", "c1"}, "a1 b1 c1", "b2"},
		{"of equal owners the idle one", []string{"a1", "b1", "c1", "a1?", "d1"}, "a1 c1 d1", "b1"},
		{"of equal larger owners the idle one", []string{"a1", "a2", "b1", "b2", "a1?", "c1"}, "a1 a2 b2 c1", "b1"},
		{"a removal makes an owner smaller", []string{"a1", "a2", "b1", "a2-", "c1", "d1"}, "b1 c1 d1", "a1 a2"},
		{"the new entry counts", []string{"a1", "b1", "b2", "c1?", "b3", "a2"}, "a1 a2 b3", "b1 b2"},
		{"an owner with as many displaces nobody", []string{"a1", "a2", "b1", "b2", "b3"}, "a1 a2 b2 b3", "b1"},
		{"an owner that was removed starts anew", []string{"a1", "a1-", "b1", "a2", "c1", "d1"}, "a2 c1 d1", "a1 b1"},
		{"a newcomer finds room", []string{"a1", "a2", "a3", "b1"}, "a2 a3 b1", "a1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			present := strings.Fields(tt.present)
			m := lru.NewShared[string, int](max(3, len(present)), func(key string) uint64 { return uint64(key[0]) })
			for _, use := range tt.uses {
				if key, found := strings.CutSuffix(use, "?"); found {
					m.Get(key)
				} else if key, found := strings.CutSuffix(use, "-"); found {
					m.Remove(key)
				} else {
					m.Put(use, 1)
				}
			}
			for _, key := range present {
				if _, ok := m.Get(key); !ok {
					t.Errorf("%s is absent", key)
				}
			}
			for key := range strings.FieldsSeq(tt.absent) {
				if _, ok := m.Get(key); ok {
					t.Errorf("%s is present", key)
				}
			}
		})
	}
}

// TestSized: entries are evicted until their sizes fit, by the number of an owner's entries.
func TestSized(t *testing.T) {
	m := lru.NewSized(100, func(key string) uint64 { return uint64(key[0]) }, func(_ string, size int) int { return size })
	put := func(key string, size, total int, present string) {
		t.Helper()
		m.Put(key, size)
		var keys []string
		for key, size := range m.All() {
			if got, ok := m.Peek(key); !ok || got != size {
				t.Errorf("%s: %d, %v, want %d", key, got, ok, size)
			}
			keys = append(keys, key)
		}
		slices.Sort(keys)
		if got := strings.Join(keys, " "); got != present || m.Size() != total {
			t.Errorf("after %s: %q of %d, want %q of %d", key, got, m.Size(), present, total)
		}
	}
	put("a1", 90, 90, "a1")
	put("b1", 5, 95, "a1 b1")
	put("b2", 5, 100, "a1 b1 b2")
	m.Peek("b1") // is no use
	put("b3", 1, 96, "a1 b2 b3")
	put("b2", 9, 100, "a1 b2 b3") // a new size
	put("c1", 10, 19, "b2 c1")
	put("b2", 101, 10, "c1") // is too large
	put("d1", 100, 100, "d1")
	if m.Clear(); m.Size() != 0 || m.Len() != 0 {
		t.Errorf("after Clear: %d of size %d", m.Len(), m.Size())
	}
}
