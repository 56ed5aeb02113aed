package oplog

import "syscall"

// Sync implements [File] by fdatasync, which does not write the times of the file.
func (f osFile) Sync() error { return callSystem("fdatasync", f.File, syscall.Fdatasync) }
