package etcdstore

import (
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/egress"
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
// unless etcd says that it refused the change. Its text shows no URL beyond host and
// port, also where an interceptor or a proxy quotes the request.
func changeError(err error, url egress.URL) error {
	text := err.Error()
	if redact.Quotes(text, strings.TrimPrefix(url.Reveal(), url.String())) {
		text = "the error quotes the URL, and is not shown"
	}
	switch codeOf(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.ResourceExhausted,
		codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return redact.Error("etcdstore: a change was refused: "+text, err)
	}
	return redact.Error(ErrOutcomeUnknown.Error()+": "+text, errors.Join(ErrOutcomeUnknown, err))
}

func codeOf(err error) codes.Code {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		return known.Code()
	}
	return status.Code(err)
}
