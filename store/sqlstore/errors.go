package sqlstore

import (
	"errors"
	"strings"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

var (
	// ErrOutcomeUnknown is wrapped by the error of a change whose commit was sent but not
	// acknowledged, because the connection broke or the context ended, and whose outcome
	// could not be determined afterwards. The change was applied completely or not at
	// all; it may still be applied, unless another change of the client is acknowledged
	// first. Resolve returns the state in effect. Applying the change again without
	// looking could undo a later change of another process.
	ErrOutcomeUnknown = errors.New("sqlstore: commit outcome unknown")
	// ErrNewerSchema is wrapped by the error of a call if the tables were migrated by a later
	// version of this package. Nothing was changed.
	ErrNewerSchema = errors.New("sqlstore: schema of a later version of this package")
)

// wrapError adds the operation to an error, and withholds its text if the driver or the
// server quoted the URL in it, wholly or in part. It returns nil for nil.
func wrapError(operation string, err error, url egress.URL) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if redact.Quotes(text, strings.TrimPrefix(url.Reveal(), url.String())) {
		text = withheldText(err)
	}
	return redact.Error("sqlstore: "+operation+": "+text, err)
}

// withheldText replaces the text of an error that quotes the URL.
func withheldText(err error) string {
	const text = "error text withheld because it quotes the URL"
	if errors.Is(err, ErrOutcomeUnknown) {
		return ErrOutcomeUnknown.Error() + ": " + text
	}
	return text
}
