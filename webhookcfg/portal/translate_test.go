package portal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/portal"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// TestTexts: each text appears somewhere. The tests of pages check that each key has a text.
func TestTexts(t *testing.T) {
	var sources strings.Builder
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, pageFiles(t)...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(textEntry.ReplaceAll(data, nil))
	}
	dynamic := []string{"state.", "reason.", "remedy.", "source.", "error.", "done.", "again."}
	states, reasons := sent.Words()
	for key, text := range portal.Texts() {
		prefix, _, _ := strings.Cut(key, ".")
		isDynamic := prefix == "sent" && slices.Contains(slices.Concat(states, reasons), strings.TrimPrefix(key, "sent."))
		for _, d := range dynamic {
			isDynamic = isDynamic || d == prefix+"."
		}
		if text == "" || !isDynamic && !strings.Contains(sources.String(), `"`+key+`"`) {
			t.Errorf("%s: unused, or empty", key)
		}
	}
	portal.Texts()["lang"] = "changed"
	if portal.Texts()["lang"] != "en" {
		t.Error("the texts can be changed")
	}
}

// textEntry is a line that defines a text.
var textEntry = regexp.MustCompile(`(?m)^\t"[^"]+": +".*",$`)

// TestTextsOfPages: no page replaces a text of another one.
func TestTextsOfPages(t *testing.T) {
	all := 0
	for _, texts := range portal.TextsOfPages() {
		all += len(texts)
	}
	if all != len(portal.Texts()) {
		t.Errorf("the pages have %d texts, but only %d keys", all, len(portal.Texts()))
	}
}

// pageFiles returns the names of all templates.
func pageFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("assets/*/*.html")
	if err != nil || len(files) == 0 {
		t.Fatal("no templates: ", err)
	}
	return files
}

// TestDeliveryWords: each state and reason of a delivery has its text, and each state that
// isn't good says what to do.
func TestDeliveryWords(t *testing.T) {
	texts := portal.Texts()
	states, reasons := webhookcfg.DeliveryWords()
	want := []string{"state.none", "state.unknown"}
	for _, state := range states {
		want = append(want, "state."+state)
		if state != "ok" {
			want = append(want, "remedy."+state)
		}
	}
	for _, reason := range reasons {
		want = append(want, "reason."+reason)
	}
	for _, key := range want {
		if texts[key] == "" {
			t.Errorf("no text for %s", key)
		}
	}
	for key := range texts {
		if prefix, _, _ := strings.Cut(key, "."); (prefix == "state" || prefix == "reason") && !slices.Contains(want, key) {
			t.Errorf("%s is the text of an unknown word", key)
		}
	}
}

// TestNotificationWords: each state and reason of a notification has its text, which can be that
// of the same reason of a delivery.
func TestNotificationWords(t *testing.T) {
	texts := portal.Texts()
	states, reasons := sent.Words()
	for _, state := range states {
		if texts["sent."+state] == "" {
			t.Errorf("no text for the state %s", state)
		}
	}
	for _, reason := range reasons {
		if texts["sent."+reason] == "" && texts["reason."+reason] == "" {
			t.Errorf("no text for the reason %s", reason)
		}
	}
}

// TestWeight: assets stay small, and hold no script.
func TestWeight(t *testing.T) {
	size := 0
	for _, file := range append(pageFiles(t), "assets/style.css") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		size += len(data)
		if strings.Contains(string(data), "<script") || strings.Contains(string(data), " on") && strings.Contains(string(data), "onclick") {
			t.Errorf("%s has a script", file)
		}
	}
	if size > 25_000 {
		t.Errorf("%d bytes of assets", size)
	}
}
