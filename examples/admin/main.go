// Command admin maintains the file of a file store while no service has it open.
//
//	admin check FILE          reads the file and reports damage; changes nothing
//	admin backup FILE COPY    writes a complete copy to a new file
//	admin salvage FILE NEW    copies the intact changes of a damaged file to a new file
//
// A running service makes its backups with File.Backup; its file is locked. What a salvage
// loses can bring back an earlier webhook: read the documentation of store.SalvageFile first.
// To use a copy, put it in the place of the file, and leave the lock file.
//
// The exit code is 0 on success, 1 after an error, 2 for wrong arguments, and 3 if the file
// is damaged: check found it so, or salvage wrote the new file without everything.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"

	"example.com/go-webhookcfg/store"
)

// Exit codes.
const (
	success = iota
	failure
	wrongUsage
	damage
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	o := &store.FileOptions{Logger: slog.New(slog.NewTextHandler(stderr, nil)), CompactRatio: -1}
	flags := flag.NewFlagSet("admin", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.AllowShared, "shared", false, "accept files and directories that other users may change or read")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: admin [-shared] check FILE | backup FILE COPY | salvage FILE NEW")
		flags.PrintDefaults()
	}
	if flags.Parse(args) != nil {
		return wrongUsage
	}
	var err error
	command, path, target := flags.Arg(0), flags.Arg(1), flags.Arg(2)
	switch {
	case command == "check" && flags.NArg() == 2:
		code, err = check(ctx, path, o, stdout)
	case command == "backup" && flags.NArg() == 3:
		err = backup(ctx, path, target, o, stdout)
	case command == "salvage" && flags.NArg() == 3:
		code, err = salvage(ctx, path, target, o, stdout)
	default:
		flags.Usage()
		return wrongUsage
	}
	switch {
	case err == nil:
		return code
	case errors.Is(err, store.ErrLocked):
		err = fmt.Errorf("%w; stop the service first, or have it call File.Backup", err)
	case command != "salvage" && errors.Is(err, store.ErrDamaged):
		code = damage
	}
	fmt.Fprintln(stderr, "admin:", err)
	return max(code, failure)
}

func check(ctx context.Context, path string, o *store.FileOptions, stdout io.Writer) (code int, err error) {
	r, err := store.CheckFile(ctx, path, o)
	if err != nil {
		return failure, err
	}
	fmt.Fprintf(stdout, "%s is intact: %d changes, %d bytes\n", path, r.Changes, r.Bytes)
	for _, torn := range r.Lost {
		fmt.Fprintf(stdout, "the last %d bytes, from byte %d, are of a write that did not complete; opening cuts them\n", torn.Length, torn.Offset)
	}
	return success, nil
}

func backup(ctx context.Context, path, target string, o *store.FileOptions, stdout io.Writer) (err error) {
	if _, err := os.Lstat(path); err != nil { // opening it would create it
		return err
	}
	file, err := store.OpenFile(path, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := file.Backup(ctx, target); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s is a copy of %s\n", target, path)
	return nil
}

func salvage(ctx context.Context, path, target string, o *store.FileOptions, stdout io.Writer) (code int, err error) {
	r, err := store.SalvageFile(ctx, path, target, o)
	if err != nil {
		return failure, err
	}
	fmt.Fprintf(stdout, "%s has what %d intact changes of %s lead to\n", target, r.Changes, path)
	if r.LostRegions == 0 {
		return success, nil
	}
	fmt.Fprintf(stdout, "not intact, or not in their place (bytes: %d, regions: %d):\n", r.LostBytes, r.LostRegions)
	for _, lost := range r.Lost {
		fmt.Fprintf(stdout, "\tline %d, byte %d: %d bytes\n", lost.Line, lost.Offset, lost.Length)
	}
	if more := r.LostRegions - len(r.Lost); more > 0 {
		fmt.Fprintf(stdout, "\tand %d more\n", more)
	}
	fmt.Fprintln(stdout, "Entities whose last change is lost have the webhook that they had before it.")
	return damage, nil
}
