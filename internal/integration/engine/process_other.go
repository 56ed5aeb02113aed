//go:build !linux

package engine

import (
	"context"
	"errors"
	"io"
)

var errLinuxOnly = errors.New("engine: servers are started on Linux only")

// process isn't supported on this system.
type process struct{}

func launch(program, []string, string) (*process, error) { return nil, errLinuxOnly }

func launchListening(program, []string, string) (*process, error) { return nil, errLinuxOnly }

func run(context.Context, program, string, io.Reader, ...string) error { return errLinuxOnly }

func unpack(string) (string, error) { return "", errLinuxOnly }

func privateDir() (string, error) { return "", errLinuxOnly }

func chownToServer(string) error { return errLinuxOnly }

func (*process) kill() error { return errLinuxOnly }

func (*process) freeze() error { return errLinuxOnly }

func (*process) thaw() error { return errLinuxOnly }
