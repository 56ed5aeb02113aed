// Package filled has flags whose values can't be empty. A script that passes a variable that isn't
// set then gets an error, and not the behavior without the flag. You can copy the package.
package filled

import (
	"errors"
	"flag"
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
