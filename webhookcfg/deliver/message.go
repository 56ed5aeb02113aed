package deliver

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"strings"
	"time"
)

// Message is a notification. Use the same ID and body for every attempt: a receiver can get
// a message more than once, for example if its response was lost, and recognizes it by its
// ID. Even within one attempt, net/http sends a request again if an idle connection closes
// just as it's used.
//
// The JSON form is meant for queues, where a message can stay for days. Later versions read
// what this one writes.
type Message struct {
	// ID is the webhook-id: 1 to 64 of the characters A-Z a-z 0-9 _ -. See [MessageID].
	ID string `json:"id"`

	// Body is sent as it is, up to [Options.MaxBody]. It should be text in UTF-8, such as JSON:
	// the specification's libraries for JavaScript and Python can't verify anything else.
	//
	// Don't modify it, not even right after Send returned: a connection may still be writing it
	// if the receiver responded early.
	Body []byte `json:"body"`

	// ContentType is the media type of Body, up to 256 bytes. Empty means application/json.
	ContentType string `json:"contentType,omitempty"`
}

const (
	maxMessageID   = 64
	maxContentType = 256
	defaultMaxBody = 256 << 10
	jsonType       = "application/json"
)

var (
	errMessageID   = errors.New("deliver: message ID is not 1 to 64 of the characters A-Z a-z 0-9 _ -")
	errContentType = errors.New("deliver: content type of the message is not a media type of at most 256 bytes")
)

// MessageID returns an ID that depends only on the parts, for example a client, an entity and
// its version. If you enqueue a change twice, the receiver sees one message. The ID doesn't
// give the parts away, unless they can be guessed.
//
// After you have restored a backup, versions that were used after it come again, and receivers
// would drop those messages. So make a version from the time of the change, as examples/service
// does, or make one of the parts a generation that you raise with each restore. It isn't enough to
// raise the versions in the backup: an entity that was created after it would start at 1 again. If
// you enqueue a change exactly once, as in its own transaction, you can also leave the ID of the
// message empty, where the queue allows that.
func MessageID(parts ...string) string {
	var text []byte
	for _, part := range parts {
		text = binary.BigEndian.AppendUint64(text, uint64(len(part)))
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	return "msg_" + hex.EncodeToString(sum[:16])
}

// Validate returns an error if no Sender would send the message, because of its ID or its
// content type. Call it before you enqueue a message in which these come from elsewhere.
// Otherwise you'd only find out in the background.
func (m Message) Validate() error {
	// A full stop in the ID would make the text that is signed ambiguous, and a line break
	// in the content type would add fields to the header.
	if len(m.ID) < 1 || len(m.ID) > maxMessageID {
		return errMessageID
	}
	for i := range len(m.ID) {
		switch c := m.ID[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return errMessageID
		}
	}
	if m.ContentType == "" || m.ContentType == jsonType {
		return nil
	}
	if len(m.ContentType) > maxContentType || !isFieldValue(m.ContentType) {
		return errContentType
	}
	mediaType, _, err := mime.ParseMediaType(m.ContentType)
	if err != nil || !strings.Contains(mediaType, "/") {
		return errContentType
	}
	return nil
}

// checkSize returns an error if the body is larger than allowed.
func (m Message) checkSize(maxBody int) error {
	if len(m.Body) > maxBody {
		return fmt.Errorf("deliver: body of the message has %d bytes, and Options.MaxBody is %d", len(m.Body), maxBody)
	}
	return nil
}

// Timeout returns how long an attempt may take, from [Options.Timeout]. Of a nil Sender, it returns
// the default.
func (s *Sender) Timeout() time.Duration {
	if s == nil {
		return defaultTimeout
	}
	return s.options.Timeout
}

// MaxBody returns the maximum size of a message's body, from [Options.MaxBody]. Of a nil
// Sender, it returns the default.
func (s *Sender) MaxBody() int {
	if s == nil {
		return defaultMaxBody
	}
	return s.options.MaxBody
}
