package oplog

// A write that would move the end of the file brings room with it for the writes to
// come: as many blank bytes again as the file has, within bounds.
const (
	minRoom = 4 << 10
	maxRoom = 256 << 10
)

var blanks = func() (b [maxRoom]byte) {
	for i := range b {
		b[i] = '\n'
	}
	return b
}()

// segment is the file of a log, open for appending.
type segment struct {
	file File
	// end is the offset behind the last record; from there to room all is blank.
	end, room int64
	// records counts the changes in the file.
	records int
	// proved says that the file itself tells that all before end was on disk.
	proved bool
}

// append makes lines, n records whose "synced" is end, the next durable group.
func (s *segment) append(lines []byte, n int) error {
	end := s.end + int64(len(lines))
	if end >= s.room {
		room := min(max(end, minRoom), maxRoom)
		if _, err := s.file.WriteAt(blanks[:room], end); err != nil {
			return err
		}
		s.room = end + room
	}
	if _, err := s.file.WriteAt(lines, s.end); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.end, s.records, s.proved = end, s.records+n, false
	return nil
}

// rewrite writes what is between from and end once more, in case the system took
// it for clean after a sync that failed.
func (s *segment) rewrite(from int64) error {
	if err := s.cutRoom(); err != nil {
		return err
	}
	block := make([]byte, min(blockSize, s.end-from))
	for from < s.end {
		part := block[:min(int64(len(block)), s.end-from)]
		if err := readFull(s.file, part, from); err != nil {
			return err
		}
		if _, err := s.file.WriteAt(part, from); err != nil {
			return err
		}
		from += int64(len(part))
	}
	return s.file.Sync()
}

// finish removes the room and proves what is before it by a mark.
func (s *segment) finish() error {
	if err := s.cutRoom(); err != nil {
		return err
	}
	if !s.proved {
		mark := appendMark(nil, s.end)
		if _, err := s.file.WriteAt(mark, s.end); err != nil {
			return err
		}
		s.end += int64(len(mark))
		s.room, s.proved = s.end, true
	}
	return s.file.Sync()
}

func (s *segment) cutRoom() error {
	if s.room <= s.end {
		return nil
	}
	s.room = s.end
	return s.file.Truncate(s.end)
}
