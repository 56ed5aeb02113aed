package portal

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// problem says why a person doesn't get the page that they asked for.
type problem struct {
	status int
	key    string // of the text
	detail string
	wait   time.Duration
}

func (p problem) Error() string { return p.key }

var (
	notFound    = problem{status: http.StatusNotFound, key: "error.not_found"}
	unavailable = problem{status: http.StatusServiceUnavailable, key: "error.temporarily_unavailable"}
)

// fail puts the reason on the page. Each error code of the handler has its own text. For a
// refusal of the host's, the host has.
func (v *visit) fail(err error) {
	p, ok := errors.AsType[problem](err)
	if e, isError := errors.AsType[*webhookcfg.Error](err); isError {
		p = problem{status: e.Status, key: "error." + e.Code, wait: e.RetryAfter}
		if e.Status == http.StatusBadRequest && e.Code != "webhook_unreachable" {
			p.detail = e.Description // names the rule
		}
		if slices.Contains(v.Parent.Refusals, webhookcfg.Refusal{Code: e.Code, Description: e.Description}) {
			p.key, p.detail = "error.refused", v.translated("refusal."+e.Code, e.Description)
		}
	} else if !ok {
		p = problem{status: http.StatusInternalServerError, key: "error.server_error"}
	}
	if p.status == http.StatusUnauthorized {
		p.status = http.StatusForbidden // a 401 needs a challenge, and browsers would open a prompt
	}
	v.Status, v.Detail = p.status, p.detail
	if v.isUnsure {
		v.Detail = v.T("error.unsure")
	}
	if p.key != "" {
		v.Problem = v.T(p.key)
	}
	if p.wait > 0 {
		seconds := int64((p.wait-1)/time.Second) + 1 // rounded up
		v.w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
		if p.status == http.StatusTooManyRequests {
			v.Detail = v.T("error.wait", seconds)
		}
	}
}
