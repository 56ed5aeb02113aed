package deliver

// Check returns the error for which Send refuses the message.
func (m Message) Check() error { return m.check() }

// Signatures is the value of the field webhook-signature.
var Signatures = signatures
