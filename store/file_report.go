package store

import "example.com/go-webhookcfg/internal/oplog"

// FileReport says what [CheckFile] or [SalvageFile] found in a file.
type FileReport struct {
	// Bytes is the file's length.
	Bytes int64
	// Changes is the number of intact changes, including superseded ones.
	Changes int
	// Lost has the first 100 regions that are damaged or out of place, by offset. LostRegions
	// and LostBytes count all of them.
	Lost        []FileRegion
	LostRegions int
	LostBytes   int64
}

// FileRegion is a part of a file.
type FileRegion struct {
	// Line is the number of the line where the region starts, from 1.
	Line int
	// Offset and Length are in bytes. If the end of the file is missing, the region starts
	// there.
	Offset, Length int64
}

const maxLost = 100

func (r *FileReport) lose(region oplog.Region) {
	r.LostBytes += region.Length
	if n := len(r.Lost); n > 0 && r.Lost[n-1].Offset+r.Lost[n-1].Length == region.Offset {
		r.Lost[n-1].Length += region.Length
		return
	}
	r.LostRegions++
	if len(r.Lost) < maxLost {
		r.Lost = append(r.Lost, FileRegion(region))
	}
}
