package textfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/go-webhookcfg/examples/internal/textfile"
)

const secret = "s3cret"

// TestRead: a text is what its author sees, or an error says what nobody sees.
func TestRead(t *testing.T) {
	for content, want := range map[string]string{
		"":                                "",
		secret:                            secret,
		secret + "\r\n" + secret + "\r\n": secret + "\n" + secret + "\n",
		"\t" + secret + " \n":             "\t" + secret + " \n",
		"# größe\n" + secret:              "# größe\n" + secret,
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := textfile.Read(path); err != nil || got != want {
			t.Errorf("%q: got %q, %v", content, got, err)
		}
	}
	for content, want := range map[string]string{
		"\ufeff" + secret:                                "byte order mark (U+FEFF)",
		"\xff\xfes\x003\x00":                             "UTF-16",
		"\xfe\xff\x00s\x003":                             "UTF-16",
		"s\x003\x00":                                     "UTF-16",
		secret + "\xfc":                                  "not in UTF-8",
		secret + "\n" + secret + "\u200b":                "line 2 has the invisible character U+200B",
		secret + "\u00a0" + secret:                       "line 1 has the invisible character U+00A0",
		secret + "\n\ufeff" + secret:                     "line 2 has the invisible character U+FEFF",
		secret + "\r" + secret:                           "U+000D",
		secret + "\u2028" + secret:                       "U+2028",
		secret + "\x1b[0m":                               "U+001B",
		secret + "\n" + secret + "\r\n\n\u202e" + secret: "line 4 has the invisible character U+202E",
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := textfile.Read(path)
		if err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v, want %s", content, err, want)
		}
	}
}
