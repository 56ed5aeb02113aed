package filled_test

import (
	"bytes"
	"flag"
	"strings"
	"testing"

	"example.com/go-webhookcfg/examples/internal/filled"
)

// TestVar: a flag has its default or the given value, and an empty value is an error.
func TestVar(t *testing.T) {
	for _, row := range []struct {
		args []string
		want string
		ok   bool
	}{
		{nil, "olga", true},
		{[]string{"-actor", "ivan"}, "ivan", true},
		{[]string{"-actor", ""}, "olga", false},
		{[]string{"-actor="}, "olga", false},
	} {
		var diagnostics bytes.Buffer
		flags := flag.NewFlagSet("program", flag.ContinueOnError)
		flags.SetOutput(&diagnostics)
		actor := "olga"
		filled.Var(flags, &actor, "actor", "your `name`")
		if err := flags.Parse(row.args); (err == nil) != row.ok || actor != row.want || err != nil && !strings.Contains(err.Error(), "-actor: it's empty") {
			t.Errorf("%q: %q, %v", row.args, actor, err)
		}
		diagnostics.Reset()
		if flags.PrintDefaults(); !strings.Contains(diagnostics.String(), "-actor name\n") || strings.Contains(diagnostics.String(), "panic") {
			t.Errorf("the help is %s", &diagnostics)
		}
	}
}

// TestArgs: an argument is a name and neither empty nor a flag that came too late.
func TestArgs(t *testing.T) {
	for _, row := range []struct {
		args []string
		want string // in the error
	}{
		{nil, ""},
		{[]string{"-all", "store", "acme"}, ""},
		{[]string{"store", "acme", "e-1"}, ""},
		{[]string{"store", "acme", "-all"}, `"-all" is behind the arguments`},
		{[]string{"store", "-actor=olga"}, `"-actor=olga" is behind`},
		{[]string{"store", "-"}, `"-" is behind`},
		{[]string{"store", "--", "-all"}, `"--" is behind`},
		{[]string{"--", "store", "acme", "-all"}, ""},
		{[]string{"-all", "--", "store", "-all"}, ""},
		{[]string{"store", ""}, "argument 2 is empty"},
		{[]string{"--", ""}, "argument 1 is empty"},
	} {
		flags := flag.NewFlagSet("program", flag.ContinueOnError)
		flags.Bool("all", false, "")
		if err := flags.Parse(row.args); err != nil {
			t.Fatal(err)
		}
		if err := filled.Args(flags, row.args); (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: %v", row.args, err)
		}
	}
}
