package oplog

import (
	"errors"
	"fmt"
)

// claim checks that a file is private, and locks it. The file must still have its name
// afterwards: somebody may have replaced it in between, and the holder of its lock moved on.
func (d *Dir) claim(name string, file osFile) error {
	if !d.shared {
		if err := checkPrivate(file.info); err != nil {
			return err
		}
	}
	if err := lockFile(file.File); errors.Is(err, ErrLocked) {
		return fmt.Errorf("%w: %s: close it first, or stop the process that has it open; several processes need a database or etcd instead", err, name)
	} else if err != nil {
		return err
	}
	isNamed, err := d.SameFile(name, file)
	if err == nil && !isNamed {
		err = fmt.Errorf("%s was replaced while it was being opened: try again", name)
	}
	return err
}
