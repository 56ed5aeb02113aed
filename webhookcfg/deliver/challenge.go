package deliver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// maxChallengeResponse leaves room for a signature and a line break.
const maxChallengeResponse = 128

var errChallenge = errors.New("deliver: the response to the challenge is not its signature")

// Challenge returns a probe that asks the receiver for its consent before a client can set
// its URL. The receiver must sign a random text with one of the keys for this client and URL.
// This shows that it agrees to this client's notifications and has the right key, before you
// send any.
// It isn't the default, because clients need their key first, and a receiver that responds to
// challenges. Use it as [egress.ProberOptions.HTTPProbe]:
//
//	challenge, err := deliver.Challenge(keys)
//	prober, err := policy.Prober(&egress.ProberOptions{HTTPProbe: challenge})
//	handler, err := webhookcfg.NewHandler(store, verifier, &webhookcfg.Options{Policy: policy, Prober: prober})
//
// The request is signed like any other, and has the body
//
//	{"type":"webhook.challenge","challenge":"<26 letters and digits>"}
//
// The receiver verifies the request as usual. It must, because a receiver that signs without
// verifying would sign anything for anybody. It then signs the text of the challenge alone,
// without quotation marks, with the webhook-id and webhook-timestamp of the request. It
// responds with a status from 200 to 299 and the signature as the body: "v1," and base64, as
// sign(id, timestamp, payload) of the Standard Webhooks libraries returns it. In Python:
//
//	webhook = Webhook("whsec_…")
//	event = webhook.verify(body, headers)  # raises
//	if event["type"] == "webhook.challenge":
//	    sent = datetime.fromtimestamp(int(headers["webhook-timestamp"]), timezone.utc)
//	    return webhook.sign(headers["webhook-id"], sent, event["challenge"])
//
// Any other response fails the probe, and so does an echo of the request. If the keys are
// unavailable, nothing is sent and the probe's error wraps [egress.ErrUnavailable]. Challenge
// returns an error if keys is nil.
func Challenge(keys Keys) (egress.HTTPProbe, error) {
	if keys == nil {
		return nil, errors.New("deliver: Challenge without Keys")
	}
	return func(ctx context.Context, client string, httpClient *http.Client, target egress.URL) error {
		loaded, err := loadKeys(ctx, keys, Recipient{Client: client, Webhook: webhookcfg.Webhook{URL: target}})
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
