//go:build !(darwin || linux || windows)

package oplog

import (
	"errors"
	"fmt"
	"os"
)

// freeBytes returns an error, because each of these systems has its own way to tell.
func freeBytes(*os.File) (int64, error) {
	return 0, fmt.Errorf("free space on this system: %w", errors.ErrUnsupported)
}
