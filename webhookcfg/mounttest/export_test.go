package mounttest

import (
	"context"
	"flag"
	"net"
	"net/http"
	"slices"
)

// Full runs the checks in full. Without it, a sample of their requests takes seconds.
var Full = flag.Bool("full", false, "run long tests in full, and not a sample")

// Dial connects for a check.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// CheckClasses is [Check] with the requests of some classes alone.
func CheckClasses(ctx context.Context, target Target, classes []string) (Report, error) {
	return check(ctx, target, func(*checker) {}, ofClasses(classes))
}

// CheckClassesOver is [CheckClasses] over the network of a test.
func CheckClassesOver(ctx context.Context, dial Dial, target Target, classes []string) (Report, error) {
	return check(ctx, target, func(c *checker) {
		c.dial = dial
		for _, client := range []*http.Client{c.client, c.http2} {
			client.Transport.(*http.Transport).DialContext = dial
		}
	}, ofClasses(classes))
}

// CheckSome is [Check] with every nth request of each class in each form, and with the last one.
// With -full, it has all of them.
func CheckSome(ctx context.Context, target Target, n int) (Report, error) {
	return check(ctx, target, func(*checker) {}, sample(n))
}

// CheckSomeDialling is [CheckSome] with a dial for the requests that are sent byte for byte.
func CheckSomeDialling(ctx context.Context, dial Dial, target Target, n int) (Report, error) {
	return check(ctx, target, func(c *checker) { c.dial = dial }, sample(n))
}

func ofClasses(classes []string) func([]attempt) []attempt {
	return func(all []attempt) []attempt {
		return slices.DeleteFunc(all, func(a attempt) bool { return !slices.Contains(classes, a.class) })
	}
}

func sample(n int) func([]attempt) []attempt {
	return func(all []attempt) (some []attempt) {
		if *Full {
			return all
		}
		for len(all) > 0 {
			first := all[0]
			end := slices.IndexFunc(all, func(a attempt) bool {
				return a.class != first.class || a.form != first.form || a.sets != first.sets
			})
			if end < 0 {
				end = len(all)
			}
			for i, a := range all[:end] {
				if i%n == 0 || i == end-1 {
					some = append(some, a)
				}
			}
			all = all[end:]
		}
		return some
	}
}

// check makes the attempts that are chosen.
func check(ctx context.Context, target Target, set func(*checker), choose func([]attempt) []attempt) (Report, error) {
	base, err := target.complete()
	if err != nil {
		return Report{}, err
	}
	c := newChecker(target, base)
	defer c.close()
	set(c)
	err = c.run(ctx, choose(attempts(c.wire, c.Target, c.unknown)))
	return c.report, err
}
