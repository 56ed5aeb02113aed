// Command credential edits the credential file of your service.
//
//	credential add acme           adds an id and prints its secret, only this once
//	credential rotate acme        adds and prints a secret; of the older ones, keeps only the newest
//	credential -old retire acme   removes all secrets but the newest, to finish a rotation
//	credential retire acme        removes all secrets and disables the id
//	credential list               lists the lines of the file without the hashes
//
// The newest secret is the last line of the id whose until hasn't passed.
//
// You can give a new secret a name, which your service's events show:
//
//	credential -name 2027 rotate acme
//
// A client can have several ids, see owner in package auth. To shut it out, retire each of them: the
// command prints those that are left.
//
// You don't have to stop the service. A change has an effect when the service has read the
// file again, at the interval of its FileOptions.Poll. Until then, a new secret gets 401 and
// a retired one still works. Run the command as the user of the service. It checks the new
// file as the service does, and then renames it into place, so the service never reads half a
// file.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/examples/internal/filled"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "credential:", err)
		os.Exit(1)
	}
}

// uses has the flag of each command, besides -file.
var uses = map[string]string{"add": "name", "rotate": "name", "retire": "old", "list": ""}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("credential", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("file", "credentials", "credential `file`")
	var name string
	filled.Var(flags, &name, "name", "with add and rotate: the `name` of the secret")
	old := flags.Bool("old", false, "with retire: only the secrets other than the newest, which is the last line of the id that hasn't ended")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: credential [flags] add ID | rotate ID | retire ID | list")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := filled.Args(flags, args); err != nil {
		return err
	}
	command, id := flags.Arg(0), flags.Arg(1)
	var unused error
	if used, isKnown := uses[command]; isKnown {
		flags.Visit(func(f *flag.Flag) {
			if f.Name != "file" && f.Name != used {
				unused = fmt.Errorf("%s doesn't use -%s", command, f.Name)
			}
		})
	}
	switch {
	case unused != nil:
		return unused
	case command == "list" && flags.NArg() == 1:
		return list(*path, stdout)
	case command == "add" && flags.NArg() == 2:
		return addSecret(*path, id, name, lines.add, stdout)
	case command == "rotate" && flags.NArg() == 2:
		return addSecret(*path, id, name, lines.rotate, stdout)
	case command == "retire" && flags.NArg() == 2:
		return retire(*path, id, *old, stdout)
	}
	flags.Usage()
	return flag.ErrHelp
}

// addSecret prints the secret only when it's in the file, so a printed secret is valid.
func addSecret(path, id, name string, insert func(all lines, line string) (lines, error), stdout io.Writer) error {
	secret := auth.GenerateSecret()
	line, err := auth.SHA256Line(id, secret)
	if err != nil {
		return err
	}
	if name != "" {
		if strings.ContainsFunc(name, unicode.IsSpace) {
			return fmt.Errorf("the name %q contains a blank", name)
		}
		line += " name=" + name
	}
	if err := edit(path, func(all lines) (lines, error) { return insert(all, line) }); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, secret.Reveal())
	return err
}

// retire prints the other ids of the client, which can still sign in.
func retire(path, id string, old bool, stdout io.Writer) error {
	var client string
	var left []string
	err := edit(path, func(all lines) (lines, error) {
		kept, err := all.retire(id, old)
		if err == nil && old && len(kept) == len(all) {
			return nil, fmt.Errorf("%s has only one secret, so there's no older one: to disable the id, leave out -old", id)
		}
		if err == nil && !old {
			client = owner(all.of(id)[0])
			left = kept.active(client)
		}
		return kept, err
	})
	if err != nil {
		return err
	}
	for _, other := range left {
		if _, err := fmt.Fprintf(stdout, "%s still signs in as client %s: to shut the client out, retire %[1]s too\n", other, client); err != nil {
			return err
		}
	}
	return nil
}

// list prints the lines with an id without the hashes.
func list(path string, stdout io.Writer) error {
	all, err := read(path)
	if err != nil {
		return err
	}
	for _, line := range all {
		if id(line) == "" {
			continue
		}
		fields := strings.Fields(line)
		parts := strings.Split(fields[0], ":")
		fields[0] = parts[0] + ":" + parts[1]
		if _, err := fmt.Fprintln(stdout, strings.Join(fields, " ")); err != nil {
			return err
		}
	}
	return nil
}
