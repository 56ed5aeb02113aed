package mounttest

import (
	"context"
	"slices"
)

// CheckClasses is [Check] with the requests of some classes alone.
func CheckClasses(ctx context.Context, target Target, classes []string) (Report, error) {
	base, err := target.complete()
	if err != nil {
		return Report{}, err
	}
	c := newChecker(target, base)
	defer c.close()
	err = c.run(ctx, slices.DeleteFunc(attempts(c.wire, c.Target, c.unknown), func(a attempt) bool {
		return !slices.Contains(classes, a.class)
	}))
	return c.report, err
}
