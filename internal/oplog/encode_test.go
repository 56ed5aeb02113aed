package oplog_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// at returns c, accepted n seconds and n microseconds after noon.
func at(n int, c webhookcfg.Change) webhookcfg.Change {
	c.Time = noon.Add(time.Duration(n) * (time.Second + time.Microsecond))
	return c
}

func set(client, entity, url string) webhookcfg.Change {
	return webhookcfg.SetChange(client, webhookcfg.Entity(entity), egress.NewURL(url))
}

func setAll(client, url string) webhookcfg.Change {
	return webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL(url))
}

func unset(client, entity string) webhookcfg.Change {
	return webhookcfg.UnsetChange(client, webhookcfg.Entity(entity))
}

func unsetAll(client string) webhookcfg.Change {
	return webhookcfg.UnsetChange(client, webhookcfg.All())
}

func TestLineFormat(t *testing.T) {
	for _, test := range []struct {
		change webhookcfg.Change
		want   string
	}{
		{
			at(1, set("acme", "e1", "https://example.com/a?b=c")),
			`{"op":"set","client":"acme","entity":"e1","url":"https://example.com/a?b=c","time":"2026-01-02T12:00:01.000001Z","synced":7,"crc":"5a6e44c7"}`,
		},
		{
			at(2, setAll("acme", "https://example.com/")),
			`{"op":"set","client":"acme","scope":"all","url":"https://example.com/","time":"2026-01-02T12:00:02.000002Z","synced":7,"crc":"896191e4"}`,
		},
		{
			at(3, unset("acme", "all")),
			`{"op":"unset","client":"acme","entity":"all","time":"2026-01-02T12:00:03.000003Z","synced":7,"crc":"47decc07"}`,
		},
		{
			unsetAll(`"\` + "\x01\n\x7f\u2028é😀"),
			`{"op":"unset","client":"\"\\\u0001\u000a` + "\x7f\u2028é😀" + `","scope":"all","time":"0001-01-01T00:00:00Z","synced":7,"crc":"72684a45"}`,
		},
	} {
		line, err := oplog.Encode(test.change, 7)
		if err != nil || string(line) != test.want {
			t.Errorf("Encode(%s) = %s, %v; want %s", describe(test.change), line, err, test.want)
		}
		got, synced, ok := oplog.Decode([]byte(test.want))
		if !ok || synced != 7 || describe(got) != describe(test.change) {
			t.Errorf("Decode(%s) = %s, %d, %t", test.want, describe(got), synced, ok)
		}
		checkAsJSON(t, line, test.change)
	}
}

// checkAsJSON parses a line with encoding/json.
func checkAsJSON(t *testing.T, line []byte, c webhookcfg.Change) {
	t.Helper()
	var got struct{ Client, Entity, Scope, URL, CRC string }
	if err := json.Unmarshal(line, &got); err != nil {
		t.Errorf("%s is no JSON: %v", line, err)
	}
	if got.Client != c.Client || got.Entity != c.Scope.Entity() || got.URL != c.URL.Reveal() || c.Scope.IsAll() != (got.Scope == "all") {
		t.Errorf("%s reads as %+v", line, got)
	}
}

func TestTimesAreKeptToTheMicrosecond(t *testing.T) {
	c := set("acme", "e1", "https://example.com/")
	zone := time.FixedZone("", -3*60*60)
	for _, when := range []time.Time{
		{},
		noon.Add(time.Second - 1), noon.Add(1), noon.Add(time.Microsecond), noon.In(zone), time.Unix(0, 0), time.Unix(-1, 999), time.Unix(-1, 1999),
		time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999, time.UTC), time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC),
	} {
		c.Time = when
		line, err := oplog.Encode(c, 0)
		if err != nil {
			t.Errorf("%v: %v", when, err)
		}
		got, _, ok := oplog.Decode(line)
		if !ok || got.Time != when.UTC().Truncate(time.Microsecond) {
			t.Errorf("%v came back as %v, %t", when, got.Time, ok)
		}
	}
}

func TestChangesThatCannotBeWritten(t *testing.T) {
	far := set("acme", "e1", "https://example.com/")
	far.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	early := far
	early.Time = time.Date(-1, 12, 31, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]webhookcfg.Change{
		"zero":            {},
		"no scope":        webhookcfg.UnsetChange("acme", webhookcfg.Scope{}),
		"client bytes":    unset("\xff", "e1"),
		"entity bytes":    unset("acme", "\xc3"),
		"URL bytes":       set("acme", "e1", "https://example.com/\x80"),
		"after the years": far,
		"before them":     early,
		"too long":        unset("acme", strings.Repeat("\x00", 1<<17)),
	} {
		if line, err := oplog.Encode(c, 0); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
			t.Errorf("%s: %s, %v", name, line, err)
		}
	}
}

func TestTheLongestLineCanBeRead(t *testing.T) {
	c := unset("acme", strings.Repeat("\x00", 1<<17-len("acme")))
	line, err := oplog.Encode(c, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, ok := oplog.Decode(line); !ok || describe(got) != describe(at(0, c)) && len(line) > 1<<20 {
		t.Errorf("a line of %d bytes cannot be read", len(line))
	}
}

func TestEachRecordHasOneSpelling(t *testing.T) {
	const good = `{"op":"set","client":"a","entity":"e","url":"https://x/","time":"2026-01-02T12:00:00Z","synced":10`
	if _, _, ok := oplog.Decode(oplog.Seal([]byte(good))); !ok {
		t.Fatal("the good one is not read")
	}
	for _, change := range []struct{ from, to string }{
		{`{`, ` {`},
		{`,"`, `, "`},
		{`:10`, `: 10`}, // white space
		{`"set"`, `"SET"`},
		{`"set"`, `"put"`},
		{`"op":"set",`, ``}, // operation
		{`"client":"a",`, ``},
		{`"client":"a"`, `"client":""`},
		{`"client":"a"`, `"client":null`},
		{`"client":"a"`, `"Client":"a"`},
		{`"entity":"e",`, ``},
		{`"entity":"e"`, `"entity":""`},
		{`"entity":"e"`, `"entity":null`},
		{`"entity":"e"`, `"scope":"e"`},
		{`"entity":"e"`, `"scope":"ALL"`},
		{`"entity":"e"`, `"scope":"all","entity":"e"`},
		{`"entity":"e"`, `"entity":"e","entity":"f"`},
		{`"url":"https://x/",`, ``},
		{`"url":"https://x/"`, `"url":""`},
		{`"url":"https://x/"`, `"url":7`},
		{`https`, "http\\u0073"},
		{`https`, `https\/`},
		{`https`, `https\n`},
		{`https`, `https\u000A`},
		{`https`, "https\x1f"},
		{`https`, "https\xff"},
		{`https`, `https\u0020`},
		{`https`, `https\ud83d\ude00`},
		{`2026`, `+026`},
		{`-01-`, `-13-`},
		{`-02T`, `-32T`},
		{`T12`, `T24`},
		{`:00Z`, `:60Z`},
		{`Z`, `z`},
		{`Z`, `+00:00`},
		{`T`, ` `},
		{`"time":"2026-01-02T12:00:00Z"`, `"time":"2026-02-29T12:00:00Z"`},
		{`Z"`, `.0Z"`},
		{`Z"`, `.000000Z"`},
		{`Z"`, `.12345Z"`},
		{`Z"`, `.1234567Z"`},
		{`Z"`, `,123456Z"`},
		{`Z"`, `.12345xZ"`},
		{`Z"`, `.-12345Z"`},
		{`Z"`, `.123456z"`},
		{`:10`, `:010`},
		{`:10`, `:-10`},
		{`:10`, `:1e1`},
		{`:10`, `:"10"`},
		{`:10`, `:1000000000000000000`},
		{`,"synced":10`, ``},
		{`:10`, `:10,"x":1`},
		{`:10`, `:10}`},
	} {
		line := strings.Replace(good, change.from, change.to, 1)
		if line == good {
			t.Errorf("%q is not in the line", change.from)
		}
		if got, _, ok := oplog.Decode(oplog.Seal([]byte(line))); ok {
			t.Errorf("%s was read as %s", line, describe(got))
		}
	}
	sealed := string(oplog.Seal([]byte(good)))
	for _, line := range []string{"", sealed + " ", sealed[:len(sealed)-1], strings.ToUpper(sealed), sealed + "}", "x" + sealed} {
		if _, _, ok := oplog.Decode([]byte(line)); ok {
			t.Errorf("%s was read", line)
		}
	}
}

func TestEveryPrefixOfALineIsCutShort(t *testing.T) {
	var lines [][]byte
	for _, c := range []webhookcfg.Change{set("a\\b", "e\x01", "https://x/"), setAll("a", "https://x/"), unset("a", "e"), unsetAll("a")} {
		line, err := oplog.Encode(c, 99)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
		if line, err = oplog.Encode(at(59, c), 99); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		for end := range len(line) + 1 {
			if !oplog.IsCutShort(line[:end]) {
				t.Errorf("not treated as cut short: %s", line[:end])
			}
		}
		for i := range line {
			flipped := append([]byte(nil), line...)
			flipped[i] ^= 1
			if oplog.IsCutShort(flipped) {
				t.Errorf("treated as cut short: %s", flipped)
			}
		}
	}
}
