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

// Errors of a [Store], to be tested with [errors.Is].
var (
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("etcdstore: closed")
	// ErrOutcomeUnknown is wrapped by the error of a change that was sent and whose
	// response was lost: it may have been applied, or may still be applied.
	ErrOutcomeUnknown = errors.New("etcdstore: commit outcome unknown")
	// ErrDamaged is wrapped by the error of a read that found a value not written by this
	// version of the package.
	ErrDamaged = errors.New("etcdstore: damaged value")
)

// changeError returns the error of a change that was sent. It wraps ErrOutcomeUnknown
// unless etcd rejected the change. Its text shows no URL beyond host and port, even if an
// interceptor or a proxy quotes the request.
func changeError(err error, url egress.URL) error {
	text := err.Error()
	if redact.Quotes(text, strings.TrimPrefix(url.Reveal(), url.String())) {
		text = "error text withheld because it quotes the URL"
	}
	switch codeOf(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.ResourceExhausted,
		codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return redact.Error("etcdstore: change rejected: "+text, err)
	}
	return redact.Error(ErrOutcomeUnknown.Error()+": "+text, errors.Join(ErrOutcomeUnknown, err))
}

// codeOf returns the gRPC status code of an error of etcd's client.
func codeOf(err error) codes.Code {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		return known.Code()
	}
	return status.Code(err)
}
