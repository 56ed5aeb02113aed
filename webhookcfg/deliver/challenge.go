package deliver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// maxChallengeResponse is more than a signature and a line break.
const maxChallengeResponse = 128

var errChallenge = errors.New("deliver: the response to the challenge is not its signature")

// Challenge returns a probe that requires the receiver's consent before its URL is set: it
// must sign a random text with one of the client's keys. Other receivers, such as those of
// other clients, do not know the keys. Use it as [egress.ProberOptions.HTTPProbe]:
//
//	challenge, err := deliver.Challenge(keys)
//	prober, err := policy.Prober(&egress.ProberOptions{HTTPProbe: challenge})
//
// The request is signed like any other, and has the body
//
//	{"type":"webhook.challenge","challenge":"<26 letters and digits>"}
//
// The receiver verifies it as it does every request. It then signs the text of the
// challenge alone, without quotation marks, with the webhook-id and the webhook-timestamp
// of the request, and responds with a status from 200 to 299 and that signature as the
// body: "v1," and base64, which is what sign(id, timestamp, payload) of the Standard
// Webhooks libraries returns. A server that echoes what it receives does not pass.
//
// A receiver that signs without having verified the request lets any sender have any
// message signed.
//
// Any other response, or none, is a failed probe. If the keys are unavailable, nothing is
// sent, and the error of the probe wraps [egress.ErrUnavailable]. That of Challenge reports
// that keys is nil.
func Challenge(keys Keys) (egress.HTTPProbe, error) {
	if keys == nil {
		return nil, errors.New("deliver: Challenge without Keys")
	}
	return func(ctx context.Context, client string, httpClient *http.Client, target egress.URL) error {
		loaded, err := loadKeys(ctx, keys, client)
		if err != nil {
			return fmt.Errorf("%w: %w", egress.ErrUnavailable, err)
		}
		challenge := rand.Text()
		m := Message{
			ID:   "challenge_" + rand.Text(),
			Body: []byte(`{"type":"webhook.challenge","challenge":"` + challenge + `"}`),
		}
		req, err := m.request(ctx, target, loaded, time.Now(), defaultUserAgent)
		if err != nil {
			return err
		}
		resp, err := httpClient.Do(req)
		if err != nil {
			return err
		}
		body, truncated, err := egress.ReadBody(resp, maxChallengeResponse)
		if err != nil {
			return err
		}
		if resp.StatusCode/100 != 2 {
			return fmt.Errorf("deliver: the response to the challenge has status %d", resp.StatusCode)
		}
		signature, timestamp := strings.TrimSpace(string(body)), req.Header.Get("Webhook-Timestamp")
		for _, key := range loaded {
			if !truncated && signature == signatures(m.ID, timestamp, []byte(challenge), []Key{key}) {
				return nil
			}
		}
		return errChallenge
	}, nil
}
