// Command credential edits the credential file of a service.
//
//	credential add acme           adds a client and prints its secret, only this once
//	credential rotate acme        adds a secret, of the older ones keeps the newest; prints it
//	credential -old retire acme   removes all secrets but the newest, to finish a rotation
//	credential retire acme        removes all secrets and disables the client
//	credential list               lists the clients
//
// To rotate an id, add a second id with the same owner:
//
//	credential -owner acme add acme-2
//
// The new file is checked and then renamed into place, so that a service never reads
// half of it. Run the command as the user of the service, the only one that may read
// the file.
package main

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// options holds the values of the flags.
type options struct {
	file, owner string
	old, human  bool
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	var o options
	flags := flag.NewFlagSet("credential", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.file, "file", "credentials", "credential `file`")
	flags.StringVar(&o.owner, "owner", "", "with add: the `ID` of the client that signs in, if not the id itself")
	flags.BoolVar(&o.old, "old", false, "with retire: only the secrets older than the newest")
	flags.BoolVar(&o.human, "human", false, "with add and rotate: read a secret that a person chose from standard input, one line")
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
		return edit(o.file, func(all lines) (lines, error) { return all.retire(id, o.old) })
	}
	flags.Usage()
	return flag.ErrHelp
}

// addSecret prints the secret after it is in the file, so that a printed secret is valid.
func (o options) addSecret(command, id string, stdin io.Reader, stdout io.Writer) error {
	secret, line, err := o.newSecret(id, stdin)
	if err != nil {
		return err
	}
	err = edit(o.file, func(all lines) (lines, error) {
		if command == "rotate" {
			return all.rotate(id, line)
		}
		return all.add(id, o.owner, line)
	})
	if err == nil && !o.human {
		_, err = fmt.Fprintln(stdout, secret)
	}
	return err
}

func (o options) newSecret(id string, stdin io.Reader) (secret, line string, err error) {
	if !o.human {
		secret = auth.NewSecret()
		line, err = auth.SHA256Line(id, secret)
		return secret, line, err
	}
	secret, err = bufio.NewReader(stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", "", err
	}
	secret = strings.TrimRight(secret, "\r\n")
	line, err = auth.PBKDF2Line(id, secret)
	return secret, line, err
}

// list prints one line per client, in the order of the file.
func list(path string, stdout io.Writer) error {
	if err := check(path); err != nil {
		return err
	}
	all, err := read(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(stdout)
	for _, id := range all.ids() {
		owner, state := id, "active"
		for _, line := range all {
			switch name, kind, value := cut(line); {
			case name == id && kind == "owner":
				owner = value
			case name == id && kind == "disabled":
				state = "disabled"
			}
		}
		fmt.Fprintf(w, "%s\towner %s\t%s\tsecrets %d\n", id, owner, state, len(all.secrets(id)))
	}
	return w.Flush()
}

// edit replaces the file with the result of change, or leaves it unchanged. The new
// file, created exclusively, is the lock.
func edit(path string, change func(lines) (lines, error)) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	next := path + ".new"
	file, err := os.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: another process is editing the file, or one was interrupted; in that case remove it", next)
	}
	if err != nil {
		return err
	}
	err = errors.Join(fill(file, path, change), file.Close())
	if err == nil {
		err = check(next)
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		_ = os.Remove(next)
	}
	return err
}

// fill writes the result of change, applied to the file at path, which need not exist.
func fill(next *os.File, path string, change func(lines) (lines, error)) error {
	old, err := read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all, err := change(old)
	if err != nil {
		return err
	}
	if _, err := next.WriteString(strings.Join(all, "\n") + "\n"); err != nil {
		return err
	}
	return next.Sync()
}

// check returns the error with which a service would refuse the file.
func check(path string) error {
	file, err := auth.OpenFile(path, nil)
	if err != nil {
		return err
	}
	return file.Close()
}

// lines holds the lines of a credential file, including comments.
type lines []string

func read(path string) (lines, error) {
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}

// cut splits a line; a comment and a blank line have no id.
func cut(line string) (id, kind, value string) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "#") {
		return "", "", ""
	}
	id, rest, _ := strings.Cut(line, ":")
	kind, value, _ = strings.Cut(rest, ":")
	return id, kind, value
}

func (l lines) ids() []string {
	var ids []string
	for _, line := range l {
		if id, _, _ := cut(line); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// secrets returns the lines with the client's secrets, the newest last.
func (l lines) secrets(id string) lines {
	return slices.DeleteFunc(slices.Clone(l), func(line string) bool {
		name, kind, _ := cut(line)
		return name != id || kind == "owner" || kind == "disabled"
	})
}

func (l lines) add(id, owner, line string) (lines, error) {
	if slices.Contains(l.ids(), id) {
		return nil, fmt.Errorf("%s is already in the file", id)
	}
	if cmp.Or(owner, id) != id {
		l = append(l, id+":owner:"+owner)
	}
	return append(l, line), nil
}

func (l lines) rotate(id, line string) (lines, error) {
	l, err := l.retire(id, true)
	return append(l, line), err
}

// retire removes the client's secrets: with old, all but the newest; otherwise all, and
// it disables the client, so that its id is not reused.
func (l lines) retire(id string, old bool) (lines, error) {
	if !slices.Contains(l.ids(), id) {
		return nil, fmt.Errorf("%s is not in the file", id)
	}
	disabled := slices.ContainsFunc(l, func(line string) bool {
		name, kind, _ := cut(line)
		return name == id && kind == "disabled"
	})
	removed := l.secrets(id)
	switch {
	case disabled:
		return nil, fmt.Errorf("%s is already retired", id)
	case old:
		removed = removed[:max(len(removed)-1, 0)]
	default:
		l = append(l, id+":disabled")
	}
	return slices.DeleteFunc(l, func(line string) bool { return slices.Contains(removed, line) }), nil
}
