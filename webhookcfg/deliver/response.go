package deliver

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// judge returns the result of a request with a response, of which only the status and
// Retry-After count.
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
	case resp.StatusCode == http.StatusTooManyRequests,
		resp.StatusCode == http.StatusBadGateway,
		resp.StatusCode == http.StatusServiceUnavailable,
		resp.StatusCode == http.StatusGatewayTimeout:
		r.Reason = ReasonThrottled
	default:
		r.Reason = ReasonStatus
	}
	r.Wait = min(retryAfter(resp.Header, time.Now()), maxPause)
	return r
}

// retryAfter returns for how long the field Retry-After (RFC 9110, section 10.2.3) asks not
// to call again; 0 if there is none, or one that cannot be parsed. Of several, the longest
// counts: a proxy may have added one.
func retryAfter(header http.Header, now time.Time) (wait time.Duration) {
	for _, value := range header["Retry-After"] {
		seconds, err := strconv.ParseUint(value, 10, 63)
		if err == nil || errors.Is(err, strconv.ErrRange) {
			const most = uint64(1<<63-1) / uint64(time.Second)
			wait = max(wait, time.Duration(min(seconds, most))*time.Second)
		} else if date, err := http.ParseTime(value); err == nil {
			wait = max(wait, date.Sub(now))
		}
	}
	return wait
}

// noResponse returns the result of a request with an error. A receiver has failed that does
// not respond before the deadline of the caller: otherwise, a caller with a deadline below
// Options.Timeout would call it again and again.
func noResponse(err error) Result {
	if _, ok := errors.AsType[*egress.UnreachableError](err); !ok {
		// Cancelled; or a function of the policy panicked; or the policy could not check the
		// address, or refuses what it allowed a moment ago.
		return unavailable(err)
	}
	return Result{Outcome: Failed, Reason: ReasonUnreachable, Err: err}
}

// unavailableWait is the time after which to try again if something of the host was
// unavailable.
const unavailableWait = time.Second

// unavailable returns the result of an attempt that ended for a reason of the host.
func unavailable(err error) Result {
	return Result{Outcome: Deferred, Reason: ReasonUnavailable, Wait: unavailableWait, Err: err}
}
