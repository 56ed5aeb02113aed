package redact

import (
	"fmt"
	"runtime"
)

// Panic returns what a log can show of a panic in somebody else's function: its type, since the value
// can quote secrets, or the text if the runtime wrote it.
func Panic(value any) string {
	if err, ok := value.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("value of type %T", value)
}
