// Package filled reads a command line that a script may have filled in. A variable that isn't set
// gives an error then, and not the behavior without the flag, and so does a flag where it would
// be taken for a name. You can copy the package.
package filled

import (
	"errors"
	"flag"
	"fmt"
	"strings"
)

// Var adds a flag that stores its value in p, as [flag.FlagSet.StringVar] does, but refuses an empty
// one. The default is what p has.
func Var(flags *flag.FlagSet, p *string, name, usage string) {
	flags.Var((*value)(p), name, usage)
}

type value string

func (v *value) Set(text string) error {
	if text == "" {
		return errors.New("it's empty, perhaps because a variable isn't set")
	}
	*v = value(text)
	return nil
}

func (v *value) String() string { return string(*v) }

// Args returns an error if an argument behind the flags is empty or looks like a flag. Package flag
// takes everything behind the first argument for arguments, too. Pass what you passed to
// [flag.FlagSet.Parse]. Whoever has a name with a hyphen at its start writes "--" before the
// arguments.
func Args(flags *flag.FlagSet, args []string) error {
	first := len(args) - flags.NArg()
	isMeant := first > 0 && args[first-1] == "--"
	for n, arg := range flags.Args() {
		switch {
		case arg == "":
			return fmt.Errorf("argument %d is empty, perhaps because a variable isn't set", n+1)
		case strings.HasPrefix(arg, "-") && !isMeant:
			return fmt.Errorf("%q is behind the arguments: flags come before them; for a name like this one, write -- before the arguments", arg)
		}
	}
	return nil
}
