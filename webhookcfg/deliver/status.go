package deliver

import (
	"fmt"
	"net/http"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
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
