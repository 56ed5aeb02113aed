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

// Errors of a [Store]. Test for them with [errors.Is].
var (
	// ErrClosed is the error of every call after Close.
	ErrClosed = errors.New("etcdstore: closed")
	// ErrOutcomeUnknown means that a change was sent and etcd didn't reject it, but didn't
	// acknowledge it either. So it may have been made, or may still be made later.
	//
	// Apply the change again. If someone else may have changed the same webhook meanwhile,
	// call Resolve first, or you would undo their change.
	ErrOutcomeUnknown = errors.New("etcdstore: change not acknowledged, so it may or may not have been made")
	// ErrDamaged means that a read found a value that neither this version of the package nor
	// an earlier one wrote.
	ErrDamaged = errors.New("etcdstore: damaged value")
)

// rejections are etcd's errors that prove that a change was not and will not be applied. Each
// comment names the place in the source of etcd 3.7.3 where it happens, before a put is
// applied. After any other error the outcome is unknown. That includes:
//
//   - ErrNoSpace. The member that gets a put (v3rpc.quotaKVServer) returns it instead of
//     applying the put, and so does every member while the alarm is active
//     (apply.applierV3Capped). But apply.quotaApplierV3 returns it after it has applied the
//     put.
//   - ErrTimeout and its variants, ErrStopped, ErrCanceled: the put was proposed, and may yet
//     be applied.
//   - ErrCorrupt. It only proves that the responding member hasn't applied the put.
//   - Errors that aren't etcd's, with any code. A proxy or an HTTP/2 connection can fail
//     after the put was forwarded, and a response can exceed a limit of the client.
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
	// The client, if it can't replace a token after one of the previous errors.
	rpctypes.ErrGRPCAuthFailed,
}

// rejected reports whether an error of the client is a rejection.
func rejected(err error) bool {
	return slices.ContainsFunc(rejections, func(r error) bool { return errors.Is(err, rpctypes.Error(r)) })
}

// changeError returns the error for a change that was sent. It wraps ErrOutcomeUnknown unless
// etcd rejected the change. Its text shows no path or query of the URL, even if an
// interceptor or a proxy quotes the request.
func changeError(err error, url egress.URL) error {
	text := err.Error()
	if redact.Quotes(text, strings.TrimPrefix(url.Reveal(), url.String())) {
		text = "error text withheld because it quotes the URL"
	}
	if rejected(err) {
		return redact.Error("etcdstore: change rejected: "+redact.Printable(text), err)
	}
	return redact.Error(ErrOutcomeUnknown.Error()+": "+redact.Printable(text), errors.Join(ErrOutcomeUnknown, err))
}

// codeOf returns the gRPC status code of an error of etcd's client.
func codeOf(err error) codes.Code {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		return known.Code()
	}
	return status.Code(err)
}
