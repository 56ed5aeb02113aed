package storetest

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.com/go-webhookcfg/webhookcfg"
)

// lookalikes lists names that a store could confuse with each other, or that could mean
// something to it. Patterns come last. In short mode, and with several handles, the list is
// shorter.
func (sc *script) lookalikes() []string {
	names := slices.Concat(letters(), long(), []string{client})
	if !sc.Short && len(sc.handles) == 1 {
		names = slices.Concat(names, escaped(), numbers(), syntax(), collisions(), siblings("e1"), reserved())
	}
	names = append(names, patterns("e1")...)
	seen := make(map[string]bool)
	return sc.storable(slices.DeleteFunc(names, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	}))
}

// storable returns the names that the store must keep. It can refuse those that aren't UTF-8
// without control characters. So storable tries a change without an effect.
func (sc *script) storable(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		if utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) {
			return false
		}
		return errors.Is(sc.Store.Apply(sc.ctx, webhookcfg.UnsetChange("nobody "+name, webhookcfg.Entity(name))), webhookcfg.ErrInvalidArgument)
	})
}

// letters lists names that differ in case, in accents, in width, or in what's invisible.
func letters() []string {
	return []string{
		"e", "E", "e ", " e", "e1", "e10", "é", "e\u0301", "É", "ß", "ss", "i", "İ", "ı", "σ", "ς", "\u212a", "k", "ﬁ", "fi", "е", // the last one is Cyrillic
		"\U0001f600", "\U0001f601", "中", "ｅ", "ｅ１", "e\u00a0", "e\u00ad", "e\u200b", "e\u200d", "e\u202e", "e\u2060", "e\ufe0f", "\ufeffe", "e\ufeff",
		"e\x00", "e\x001", "e\n", "e\n1", "\n",
	}
}

// escaped lists names that are equal if a store escapes one of them, but not the other.
func escaped() []string {
	all := []string{"e%20", "e+", "./e1", "x/../e1", "e1/", "e1//", "//e1", "e1/.", "..", "...", "e\\u00e9", "e\\x00", "e\\0", "e\\n", "6531", "ZTE=", "ZTE"}
	for _, between := range []string{
		"", "/", "%2F", "%2f", "%252F", "_2F", "=2F", "~1", "~01", "\\/", "&#47;", "-", "_", "__", "--", ".", "%2E", "．", "_dot_", ":", "%3A", "：",
		" ", "+", "%20", "&", "&amp;", "\\", "\\\\", "\\u002f", "|", "$", "＄", "%24", "$24", "~", "~0", "%", "%25", "'", "''", `"`, `""`, ",", ";", "#", "?",
	} {
		all = append(all, "a"+between+"b")
	}
	return all
}

// numbers lists names that are equal, or something else, once a store has read them as numbers
// or constants.
func numbers() []string {
	return []string{
		"01", "1", "1.0", "+1", "1e3", "1000", "1_000", "0x10", "16", "Infinity", "NaN", "NULL", "true", "yes", "off", "2027-01-15", "2027-01-15T00:00:00Z",
		"6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "6ba7b8109dad11d180b400c04fd430c8",
	}
}

// syntax lists names that mean something in a path, a document, a query, a template or a file
// system.
func syntax() []string {
	return []string{
		"?", "'", `"`, "e:", "e1.url", "e1.since", "e1.e1", "$e1", "$set", "_id", "__proto__", "constructor", "toString", "length", "{}", "[]", "e1[0]",
		"%s", "%d", "{0}", "{{e1}}", "${e1}", "$1", ":e1", "@e1", "e1' OR '1'='1", "e1'; --", "e1 --", "e1/*", "e1&x=1", "e1?x=1", "e1#x", "e1;x",
		"con", "nul", "e1.", "e1::$DATA", "~e1", "-e1",
	}
}

// long lists names that differ only after many bytes, or are too long once they are escaped.
func long() []string {
	var all []string
	for _, start := range []string{
		strings.Repeat("x", 127),                                                    // and one byte more, as long as identifiers are by default
		strings.Repeat(":", 127), strings.Repeat("x", 299), strings.Repeat("中", 84), // 252 bytes
	} {
		all = append(all, start+"y", start+"z")
	}
	return all
}

// collisions lists pairs of names that have the same hash of 32 bits, or the same first 32 bits
// of a longer hash.
func collisions() []string {
	return []string{
		"e939", "e16556602", // CRC-32
		"e1371838", "e2000402", // CRC-32C
		"aca", "bab", // Adler-32
		"e80092", "e420050", // FNV-1
		"e522789", "e739192", // FNV-1a
		"Aa", "BB", // String.hashCode
		"Ab", "BA", // djb2
		"e35850", "e108355", // MurmurHash3
		"e11363", "e91516", // MD5
		"e75688", "e88373", // SHA-1
		"e10732", "e52101", // SHA-256
	}
}

// siblings lists names of files and keys that a store could keep next to those of the name.
func siblings(name string) []string {
	var all []string
	for _, end := range []string{".json", ".tmp", ".new", ".old", ".bak", ".lock", ".db", "~", "-wal", "-journal", ":base", ":all", ".index", "_index"} {
		all = append(all, name+end)
	}
	return append(all, "."+name, "tmp-"+name)
}

// separators lists what a store could put between the names of a client and an entity.
func separators() []string {
	return []string{
		"", "/", ":", ".", "-", "_", "|", "@", " ", "~", "#", ",", ";", "=", "+", "!", "$", "&", "%", "\x00", "\x01", "\x1f", "\t", "\n", "::", "//", "%2F", "%00",
	}
}

// patterns lists names that match the given name in LIKE, in a glob or in a regular
// expression, unless the store escapes them. They match others too.
func patterns(name string) []string {
	start, last := name[:len(name)-1], name[len(name)-1:]
	return []string{
		"%", ".*", name + "%", name + "*", start + "_", start + "%", start + "?", start + "*", start + ".", start + "[" + last + "]",
		"[" + name[:1] + "]" + name[1:], "[!x]" + name[1:], "^" + name + "$", name + "|x", "(" + name + ")", `\` + name, name + `\`,
	}
}

// reserved lists names that a store could use for things without a name, such as the base.
func reserved() []string {
	return []string{
		"default", "__default__", "_default", "DEFAULT", "base", "__base__", "_base", "BASE", "all", "ALL", "__all__", "_all",
		"*", "_", "__", "-", "--", ".", "0", "-1", "$", "~", "@", "any", "none", "null", "nil", "root", "global", "self", "\x00",
	}
}

// urls lists URLs that the default policy accepts. Normalization would change most of them.
func urls() []string {
	return []string{
		"https://a.example",
		"HTTPS://Hooks.Example.COM:443/A/../b//c/./",
		"https://hooks.example.com/%2f%2F%41%zz?a=b&A=B&&c=+%20;d",
		"https://hooks.example.com?",
		`https://hooks.example.com/!"$%&'()*+,-./:;<=>?@[]^_` + "`{|}~",
		"https://[2001:DB8:0::1]:8443/",
		// What a page, a template, a shell or a statement would take for something else.
		"https://hooks.example.com/?a=1&amp;b=&lt;2&gt;&quot;3&#39;&#38;c=%26amp%3b",
		"https://hooks.example.com/$HOME/${HOME}/{{.URL}}/%25s%d/:name/@p1/$1?x='';--/*",
		longest(hookURL(0)),
	}
}

// longest returns a URL as long as the handler allows.
func longest(start string) string {
	const most = 2048
	return start + strings.Repeat("x", most-len(start))
}

// similarURLs lists URLs that a store could mistake for each other, if it keeps each URL
// once. They differ in case, in escapes, in parts that normalization drops, or only after
// many bytes.
func similarURLs() []string {
	const origin = "https://hooks.example.com"
	all := []string{
		origin, origin + "/", origin + "?", origin + ":443/", "https://Hooks.example.com/", "HTTPS://hooks.example.com/", origin + "./",
		origin + "/a", origin + "/A", origin + "/a/", origin + "//a", origin + "/./a", origin + "/%61", origin + "/a?", origin + "/a;",
		origin + "/a%2fb", origin + "/a%2Fb", origin + "/a/b", origin + "/a+b", origin + "/a%20b",
		origin + "/a?x=1&y=2", origin + "/a?y=2&x=1", origin + "/a?X=1&y=2", origin + "/a?x=1", origin + "/a?x=2",
	}
	for _, equal := range []int{127, 191, 255, 383, 511, 767, 1000, 1023, 2047} { // that many bytes
		start := origin + "/" + strings.Repeat("x", equal-len(origin)-1)
		all = append(all, start+"a", start+"b")
	}
	end := ".example.com/" + strings.Repeat("x", 1000)
	return append(all, "https://a"+end, "https://b"+end)
}
