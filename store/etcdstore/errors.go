package etcdstore

import (
	"errors"
	"slices"
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
	// ErrOutcomeUnknown is wrapped by the error of a change that was sent, unless etcd
	// rejected it: it may have been applied, or may still be applied. Apply it again, but
	// call Resolve first if someone else may have changed the same webhook since: a repeat
	// would undo that change.
	ErrOutcomeUnknown = errors.New("etcdstore: commit outcome unknown")
	// ErrDamaged is wrapped by the error of a read that found a value that neither this version
	// of the package nor an earlier one wrote.
	ErrDamaged = errors.New("etcdstore: damaged value")
)

// rejections are the errors of etcd after which a change was not applied and will not be.
// Each names the place in the source of etcd 3.7.3 that precedes the application of a
// put. After any other error the outcome is unknown, in particular after:
//
//   - ErrNoSpace. The member that receives a put (v3rpc.quotaKVServer) and every member
//     while the alarm is active (apply.applierV3Capped) return it instead of applying the
//     put, but apply.quotaApplierV3 returns it after having applied the put.
//   - ErrTimeout and its variants, ErrStopped, ErrCanceled: the put was proposed, and may
//     yet be applied.
//   - ErrCorrupt. Only the member that responds is known not to have applied the put.
//   - Errors that are not etcd's, whatever their code: a proxy or an HTTP/2 connection may
//     fail after the put was forwarded, and a response may exceed a limit of the client.
var rejections = []error{
	// newUnaryInterceptor of v3rpc, before the request is handled.
	rpctypes.ErrGRPCNotCapable,
	rpctypes.ErrGRPCNotSupportedForLearner,
	rpctypes.ErrGRPCNoLeader, // if the caller requires one
	// EtcdServer.processInternalRaftRequestOnce, before the put is proposed.
	rpctypes.ErrGRPCRequestTooManyRequests,
	rpctypes.ErrGRPCInvalidAuthToken,
	rpctypes.ErrGRPCRequestTooLarge,
	// apply.authApplierV3.Put, instead of applying the put.
	rpctypes.ErrGRPCUserEmpty,
	rpctypes.ErrGRPCAuthOldRevision,
	rpctypes.ErrGRPCPermissionDenied,
	// The client, if it cannot replace a token after one of the previous errors.
	rpctypes.ErrGRPCAuthFailed,
}

// rejected reports whether an error of the client is one of the rejections.
func rejected(err error) bool {
	return slices.ContainsFunc(rejections, func(r error) bool { return errors.Is(err, rpctypes.Error(r)) })
}

// changeError returns the error of a change that was sent. It wraps ErrOutcomeUnknown
// unless etcd rejected the change. Its text shows no URL beyond host and port, even if an
// interceptor or a proxy quotes the request.
func changeError(err error, url egress.URL) error {
	text := err.Error()
	if redact.Quotes(text, strings.TrimPrefix(url.Reveal(), url.String())) {
		text = "error text withheld because it quotes the URL"
	}
	if rejected(err) {
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
