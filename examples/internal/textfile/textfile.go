// Package textfile reads text that a person has edited, such as a file of keys. Editors and shells
// add characters that nobody sees, and a secret with one of them is another secret. So they are
// refused. You can copy the package.
package textfile

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Read returns the text in a file. Its lines end with \n, also if those in the file end with \r\n.
// An error never quotes the text.
func Read(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	if err := Check(text); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}

// Check refuses text with characters that nobody sees, other than blanks, tabs and ends of lines.
// An error names the character and its line, but doesn't quote the text.
func Check(text string) error {
	if err := CheckEncoding(text); err != nil {
		return err
	}
	if !utf8.ValidString(text) {
		return errors.New("not in UTF-8: save it as UTF-8")
	}
	line := 1
	for _, c := range text {
		switch {
		case c == '\n':
			line++
		case c != '\t' && !unicode.IsPrint(c):
			return fmt.Errorf("line %d has the invisible character %U: remove it", line, c)
		}
	}
	return nil
}

// CheckEncoding refuses only a byte order mark and UTF-16. It's for formats that can contain text
// in any encoding, such as the comments around certificates.
func CheckEncoding(text string) error {
	switch {
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"), strings.Contains(text, "\x00"):
		return errors.New("in UTF-16, or no text: save it as UTF-8, without a byte order mark")
	case strings.HasPrefix(text, "\ufeff"):
		return errors.New("starts with a byte order mark (U+FEFF), which nobody sees: save it as UTF-8 without one")
	}
	return nil
}
