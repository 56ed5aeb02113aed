package webhookcfg

import "errors"

// Sentinel errors, to be found with [errors.Is].
var (
	// ErrInvalidCredentials is a verifier's answer to an unknown client, a wrong
	// secret and a disabled client alike. The handler answers 401.
	ErrInvalidCredentials = errors.New("webhookcfg: invalid client credentials")

	// ErrInvalidArgument is a store's answer to a change or a name that no correct
	// caller passes. The handler takes it for a defect and answers 500.
	ErrInvalidArgument = errors.New("webhookcfg: invalid argument")
)
