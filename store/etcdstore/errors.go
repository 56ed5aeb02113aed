package etcdstore

import (
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Sentinel errors of a [Store], to be found with [errors.Is].
var (
	// ErrClosed is the answer to every call after Close.
	ErrClosed = errors.New("etcdstore: closed")
	// ErrOutcomeUnknown is the answer to a change that was sent and whose answer was
	// lost: it may have been made, or may yet be made soon.
	ErrOutcomeUnknown = errors.New("etcdstore: the outcome of a change is unknown")
	// ErrDamaged says that a key of the store holds what this version of the package
	// did not write.
	ErrDamaged = errors.New("etcdstore: damaged")
)

// changeError is the error of a change that was sent. It is one of outcome unknown
// unless etcd says that it refused the change.
func changeError(err error) error {
	switch codeOf(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.ResourceExhausted,
		codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return fmt.Errorf("etcdstore: a change was refused: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
}

func codeOf(err error) codes.Code {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		return known.Code()
	}
	return status.Code(err)
}
