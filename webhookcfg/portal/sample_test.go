package portal_test

import (
	"context"
	"html"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestSamples: each sample is shown without the key until the person asks for it, and then with
// the key of the webhook that they look at.
func TestSamples(t *testing.T) {
	const key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	f := newFixture(t)
	f.portal.SigningKey = func(_ context.Context, client, entity string, hook webhookcfg.Webhook) (string, error) {
		if client != acme || hook.URL.IsZero() {
			return "", nil
		}
		return key + entity, nil
	}
	hooktest.Apply(t, f.store, hooktest.Set(acme, "e1", 1))
	p := f.serve(t)
	p.signIn()
	p.get("").expect(t, 200, `href="?page=sample"`)
	p.get("entity?id=e1").expect(t, 200, `href="?page=sample&amp;id=e1"`)
	for _, language := range []string{"", "go", "java", "javascript", "php", "python"} {
		hidden := p.get("sample?id=e1&lang=" + language)
		hidden.expect(t, 200, "whsec_YOUR_KEY", "!"+key, "Put the signing key in", "Until your signing key is in it", "webhook-timestamp")
		shown := p.get("sample?id=e1&show=1&lang=" + language)
		shown.expect(t, 200, key+"e1", "!whsec_YOUR_KEY", "Hide the key")
		if strings.Count(html.UnescapeString(hidden.text), "whsec_YOUR_KEY") != 1 {
			t.Errorf("%s: not one placeholder", language)
		}
	}
	p.get("sample").expect(t, 200, "whsec_YOUR_KEY", "!Put the signing key in") // no base
	for _, language := range []string{"../page.html", "cobol", "..%2f..%2fstyle.css"} {
		p.get("sample?lang="+language).expect(t, 404, "There is no such page")
	}
	f = newFixture(t)
	p = f.serve(t)
	p.signIn()
	p.get("sample").expect(t, 404, "There is no such page")
	p.get("").expect(t, 200, `!href="?page=sample"`)
}
