package deliver

import (
	"fmt"
	"net/http"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// verdict is what an attempt's result says about the webhook and its host.
type verdict struct {
	effect      effect
	hasResponse bool          // so others can connect to the host, too
	pause       time.Duration // the receiver asked for, up to Options.MaxPause; zero: none
}

type effect uint8

const (
	effectNone effect = iota // the attempt ended for a reason of the sender's
	effectSuccess
	effectFailure
	effectUnconnected // a failure of the host, and not of the webhook
)

// judge returns the result of a request that got a response. Only the status and Retry-After
// count.
func judge(target egress.URL, resp *http.Response, maxPause time.Duration) Result {
	if resp.StatusCode/100 == 2 {
		return Result{Outcome: Delivered, Status: resp.StatusCode}
	}
	r := Result{
		Outcome: Failed,
		Status:  resp.StatusCode,
		Err:     fmt.Errorf("deliver: %v responded with status %d", target, resp.StatusCode),
	}
	switch {
	case resp.StatusCode/100 == 3:
		r.Reason = ReasonRedirect
		return r
	case resp.StatusCode == http.StatusGone:
		r.Outcome, r.Reason = Undeliverable, ReasonGone
		return r
	case resp.StatusCode == http.StatusRequestEntityTooLarge:
		r.Outcome, r.Reason = Undeliverable, ReasonStatus // another attempt would be as large
		return r
	case resp.StatusCode == http.StatusTooManyRequests,
		resp.StatusCode == http.StatusBadGateway,
		resp.StatusCode == http.StatusServiceUnavailable,
		resp.StatusCode == http.StatusGatewayTimeout:
		r.Reason = ReasonThrottled
	default:
		r.Reason = ReasonStatus
	}
	r.Wait = retryAfter(resp.Header, time.Now(), maxPause)
	return r
}
