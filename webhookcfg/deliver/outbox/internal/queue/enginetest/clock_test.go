package enginetest

import (
	"database/sql/driver"
	"fmt"
	"strconv"
	"time"

	"modernc.org/sqlite"
)

// SQLite takes this function for its own one, so the SQL of the package has the time of the bubble.
func init() {
	sqlite.MustRegisterScalarFunction("strftime", 2, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		now := time.Now().UTC()
		switch fmt.Sprint(args) {
		case "[%s now]":
			return strconv.FormatInt(now.Unix(), 10), nil
		case "[%f now]":
			return now.Format("05.000"), nil
		}
		return nil, fmt.Errorf("strftime of %q: the tests have no such format", args)
	})
}
