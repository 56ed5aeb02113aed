package deliver

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// retryAfter returns the delay that the field Retry-After asks for (RFC 9110, section
// 10.2.3), up to maxPause, or 0 if it's missing or malformed. The longest of several counts,
// since a proxy may have added one.
func retryAfter(header http.Header, now time.Time, maxPause time.Duration) (wait time.Duration) {
	for _, value := range header["Retry-After"] {
		seconds, err := strconv.ParseUint(value, 10, 63)
		if err == nil || errors.Is(err, strconv.ErrRange) {
			const most = uint64(1<<63-1) / uint64(time.Second)
			wait = max(wait, time.Duration(min(seconds, most))*time.Second)
		} else if date, err := http.ParseTime(value); err == nil {
			wait = max(wait, date.Sub(now))
		}
	}
	return min(wait, maxPause)
}
