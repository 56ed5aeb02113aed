package oplog

import "syscall"

// Sync implements [File]. It calls fdatasync, which doesn't write the file's times.
func (f osFile) Sync() error { return callSystem("fdatasync", f.File, syscall.Fdatasync) }
