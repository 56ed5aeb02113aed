package portal

import (
	"slices"
	"strings"
)

// language is one that a sample is written in.
type language struct{ Key, Name string }

// languages are those of the samples, in order. Each has a file.
var languages = []language{
	{"go", "Go"},
	{"java", "Java"},
	{"javascript", "JavaScript"},
	{"php", "PHP"},
	{"python", "Python"},
}

// samplePlaceholder stands for the key in the samples.
const samplePlaceholder = "whsec_YOUR_KEY"

// samplePage shows how a receiver verifies notifications.
type samplePage struct {
	*frame
	Languages        []language
	Language, Sample string
	HasKey, IsShown  bool // there's a key, and the sample has it
}

// showSample shows how a receiver verifies notifications, with the key only if the person asks.
func showSample(v *visit) (any, error) {
	if v.Options.SigningKey == nil {
		return nil, notFound
	}
	id, name := v.asked("id"), v.query.Get("lang")
	if name == "" {
		name = languages[0].Key
	}
	if !slices.ContainsFunc(languages, func(l language) bool { return l.Key == name }) {
		return nil, notFound
	}
	_, key, err := readKey(v, id)
	if err != nil {
		return nil, err
	}
	text, err := assets.ReadFile("assets/samples/" + name + ".txt")
	if err != nil {
		return nil, err // can't happen: the tests read all of them
	}
	p := &samplePage{frame: v.about("sample", "sample.title", id), Languages: languages, Language: name, Sample: string(text), HasKey: key != ""}
	p.IsShown = v.query.Has("show") && p.HasKey
	if p.IsShown {
		p.Sample = strings.Replace(p.Sample, samplePlaceholder, key, 1)
	}
	return p, nil
}

// sampleTexts are the words of the samples.
var sampleTexts = map[string]string{
	"sample.title": "Verify notifications",
	"sample.what":  "Put this into your server, and call it for each notification before you read it. Respond with a status from 200 to 299 once you have it, and use webhook-id to recognize one that you've had. Until your signing key is in it, it refuses every notification.",
	"sample.show":  "Put the signing key in",
	"sample.hide":  "Hide the key",
	"sample.open":  "How to verify notifications",
}
