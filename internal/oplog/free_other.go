//go:build !(darwin || linux || windows)

package oplog

import (
	"errors"
	"fmt"
	"os"
)

// freeBytes returns an error: each of these systems tells it in a way of its own.
func freeBytes(*os.File) (int64, error) {
	return 0, fmt.Errorf("free space on this system: %w", errors.ErrUnsupported)
}
