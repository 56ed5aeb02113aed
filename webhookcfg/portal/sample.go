package portal

import (
	"slices"
	"strings"
)

// sampleNames are the languages of the samples, in order. Each has a file.
var sampleNames = []struct{ Key, Name string }{
	{"go", "Go"},
	{"java", "Java"},
	{"javascript", "JavaScript"},
	{"php", "PHP"},
	{"python", "Python"},
}

// samplePlaceholder stands for the key in the samples.
const samplePlaceholder = "whsec_YOUR_KEY"

// Samples returns the languages of the samples.
func (*visit) Samples() []struct{ Key, Name string } { return sampleNames }

// sample shows how a receiver verifies notifications, with the key only if the person asks.
func (v *visit) sample() error {
	if v.Options.SigningKey == nil {
		return notFound
	}
	v.Language = v.query.Get("lang")
	if v.Language == "" {
		v.Language = sampleNames[0].Key
	}
	if !slices.ContainsFunc(sampleNames, func(s struct{ Key, Name string }) bool { return s.Key == v.Language }) {
		return notFound
	}
	if err := v.key(); err != nil {
		return err
	}
	text, err := assets.ReadFile("assets/samples/" + v.Language + ".txt")
	if err != nil {
		return err // can't happen: the tests read all of them
	}
	v.Template, v.Title, v.Sample = "sample", "sample.title", string(text)
	v.Hook.IsShown = v.query.Has("show") && v.Key != ""
	if v.Hook.IsShown {
		v.Sample = strings.Replace(v.Sample, samplePlaceholder, v.Key, 1)
	}
	return nil
}
