// Command credential edits the credential file of your service.
//
//	credential add acme           adds a client and prints its secret, only this once
//	credential rotate acme        adds and prints a secret; of the older ones, keeps only the newest
//	                              that still signs in
//	credential -old retire acme   removes all secrets but that one, to finish a rotation
//	credential retire acme        removes all secrets and disables the client
//	credential list               lists the lines of the file without the hashes
//
// You can give a new secret a name, which your service's events show, and an end:
//
//	credential -name 2027 -until 2028-01-31T12:00:00Z rotate acme
//
// To rotate an id, add a second id with the same owner:
//
//	credential -owner acme add acme-2
//
// You don't have to stop the service. A change has an effect when the service has read the
// file again, at the interval of its FileOptions.Poll. Until then, a new secret gets 401 and
// a retired one still works. The command checks the new file and then renames it into place,
// with the owner, group and mode of the old one, so the service never reads half a file, and
// can still read it. You should run the command as the user of the service. If the file
// belongs to somebody else, only root can keep its owner. For other users the command fails.
//
// A service refuses a file that its group or others can read, and goes on with the secrets it
// has, even with a retired one. The command changes nothing then, and fails. Use chmod 600, or
// give -shared if your service accepts such a file (FileOptions.AllowReadable).
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"example.com/go-webhookcfg/auth"
)

func main() {
	err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "credential:", err)
		os.Exit(1)
	}
}

// options are the values of the flags.
type options struct {
	file, owner, name, until string
	old, human, shared       bool
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	var o options
	flags := flag.NewFlagSet("credential", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.file, "file", "credentials", "credential `file`")
	flags.StringVar(&o.owner, "owner", "", "with add: the `ID` of the client that signs in, if not the id itself")
	flags.StringVar(&o.name, "name", "", "with add and rotate: the `name` of the secret")
	flags.Func("until", "with add and rotate: the `time` at which the secret ends, such as 2028-01-31T12:00:00Z", func(text string) error {
		until, err := time.Parse(time.RFC3339, text)
		if err == nil && !until.After(time.Now()) {
			err = errors.New("the time has passed")
		}
		o.until = text
		return err
	})
	flags.BoolVar(&o.old, "old", false, "with retire: only the secrets older than the newest")
	flags.BoolVar(&o.human, "human", false, "with add and rotate: read a secret that a person chose from standard input, one line")
	flags.BoolVar(&o.shared, "shared", false, "accept a file that its group or everybody can read, because the service does too (FileOptions.AllowReadable)")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: credential [flags] add ID | rotate ID | retire ID | list")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	command, id := flags.Arg(0), flags.Arg(1)
	switch {
	case command == "list" && flags.NArg() == 1:
		return list(o.file, stdout)
	case (command == "add" || command == "rotate") && flags.NArg() == 2:
		return o.addSecret(command, id, stdin, stdout)
	case command == "retire" && flags.NArg() == 2:
		return edit(o.file, o.shared, func(all entries) (entries, error) { return all.retire(id, o.old) })
	}
	flags.Usage()
	return flag.ErrHelp
}

// addSecret prints the secret only when it's in the file, so a printed secret is valid.
func (o options) addSecret(command, id string, stdin io.Reader, stdout io.Writer) error {
	secret, line, err := o.newSecret(id, stdin)
	if err != nil {
		return err
	}
	_, hash, _ := strings.Cut(line, ":")
	added := entry{id: id, hash: hash, name: o.name, owner: o.owner, until: o.until}
	err = edit(o.file, o.shared, func(all entries) (entries, error) {
		if command == "rotate" {
			return all.rotate(added)
		}
		return all.add(added)
	})
	if err == nil && !o.human {
		_, err = fmt.Fprintln(stdout, secret.Reveal())
	}
	return err
}

func (o options) newSecret(id string, stdin io.Reader) (secret auth.Secret, line string, err error) {
	if !o.human {
		secret = auth.GenerateSecret()
		line, err = auth.SHA256Line(id, secret)
		return secret, line, err
	}
	text, err := bufio.NewReader(stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return auth.Secret{}, "", err
	}
	secret = auth.NewSecret(strings.TrimRight(text, "\r\n"))
	line, err = auth.PBKDF2Line(id, secret)
	return secret, line, err
}

// list prints the lines of the clients without the hashes.
func list(path string, stdout io.Writer) error {
	all, err := read(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(stdout)
	for _, e := range all {
		e.hash, _, _ = strings.Cut(e.hash, ":")
		if e.id != "" {
			fmt.Fprintln(w, e)
		}
	}
	return w.Flush()
}
