package deliver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
)

// signatures returns the value of the field webhook-signature: for each key "v1," and the
// base64 of an HMAC-SHA256, separated by spaces.
func signatures(id, timestamp string, body []byte, keys []Key) string {
	head := id + "." + timestamp + "."
	text := make([]byte, 0, len(keys)*48)
	var sum [sha256.Size]byte
	for i, key := range keys {
		if i > 0 {
			text = append(text, ' ')
		}
		mac := hmac.New(sha256.New, []byte(key.secret.Reveal()))
		_, _ = io.WriteString(mac, head) // a hash returns no error
		_, _ = mac.Write(body)
		text = append(text, "v1,"...)
		text = base64.StdEncoding.AppendEncode(text, mac.Sum(sum[:0]))
	}
	return string(text)
}
