package sqlstore

import (
	"fmt"
	"io/fs"
	"testing/fstest"
)

// WithMigration returns a dialect whose schema has one more version, so that you can test
// upgrades. The text is the file of that version.
func WithMigration(d Dialect, text string) Dialect {
	spec, files := *d.spec, fstest.MapFS{}
	next := firstVersion
	for ; ; next++ {
		name := fmt.Sprintf("%s/%03d.sql", spec.directory, next)
		content, err := fs.ReadFile(schemas, name)
		if err != nil {
			files[name] = &fstest.MapFile{Data: []byte(text)}
			break
		}
		files[name] = &fstest.MapFile{Data: content}
	}
	spec.schema = files
	return Dialect{&spec}
}
