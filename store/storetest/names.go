package storetest

import (
	"slices"
	"strings"
)

// lookalikes lists names that collation, escaping or pattern matching could confuse, or that
// could mean something to the store. Patterns come last.
func lookalikes() []string {
	long := strings.Repeat("x", 127) // and one byte more, as long as identifiers are by default
	longer := strings.Repeat("x", 299)
	names := slices.Concat([]string{
		"e", "E", "e ", " e", "e1", "e10", "01", "1", "1.0", "e:", "e%20", "e+", "./e1", "x/../e1", "?", "'", `"`, "NULL", "true", "off",
		"é", "e\u0301", "É", "ß", "ss", "i", "İ", "ı", "\U0001f600", "\U0001f601", "中", "ｅ",
		"e\x00", "e\x001", "e\n", "e\n1", "\n", long + "y", long + "z", longer + "y", longer + "z",
	}, reserved(), []string{client}, patterns("e1"))
	seen := make(map[string]bool)
	return slices.DeleteFunc(names, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
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
	const longest = 2048
	long := "https://hooks.example.com/"
	return []string{
		"https://a.example",
		"HTTPS://Hooks.Example.COM:443/A/../b//c/./",
		"https://hooks.example.com/%2f%2F%41%zz?a=b&A=B&&c=+%20;d",
		"https://hooks.example.com?",
		`https://hooks.example.com/!"$%&'()*+,-./:;<=>?@[]^_` + "`{|}~",
		"https://[2001:DB8:0::1]:8443/",
		long + strings.Repeat("x", longest-len(long)),
	}
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
