package webhookcfg

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// operation is an operation for a client. A request asked for it, or a call from Go.
type operation struct {
	h     *Handler
	start time.Time
	peer  string // the address of the connection; "" in a call from Go
	event Event
	// url is the URL of a set, even a malformed one, or the webhook whose deliveries are
	// read. secrets are the client's secrets. We redact both in the texts of other packages.
	url     egress.URL
	secrets [2]string
}

// attempt performs the operation and records its outcome. If the store, the verifier, the
// prober or a function of the options panics, attempt returns that as an error.
func (o *operation) attempt(ctx context.Context, perform func(context.Context) *apiError) (e *apiError) {
	defer func() {
		if value := recover(); value != nil {
			e = serverError(o.performPanic(value))
			o.recordOutcome(e)
		}
	}()
	e = perform(ctx)
	o.recordOutcome(e)
	return e
}

// recordOutcome records the outcome in the event.
func (o *operation) recordOutcome(e *apiError) {
	if e == nil {
		o.event.Status = http.StatusOK
		return
	}
	o.event.Err = o.redactedError(e.cause) // first, since the cause's Error method may panic
	o.event.Status, o.event.Code, o.event.Description = e.status(), errorTable[e.code].name, e.description
}

// report logs the event and passes it to OnEvent.
func (o *operation) report(ctx context.Context) {
	defer o.recoverReport(ctx)
	level, logger, onEvent := o.event.level(ctx), o.h.options.Logger, o.h.options.OnEvent
	if onEvent == nil && !logger.Enabled(ctx, level) {
		return
	}
	o.event.Duration, o.event.Source = time.Since(o.start), o.source(ctx)
	if actor, ok := ctx.Value(actorKey{}).(string); ok && (o.event.Operation != opNameSignIn || o.event.Client != "") {
		o.event.Actor = shownID(actor, o.secrets[1])
	}
	if o.event.Operation == opNameSet {
		o.event.URL = o.url // even if the set was refused
	}
	if onEvent != nil {
		defer onEvent(ctx, o.event) // even if the logger panics
	}
	logger.LogAttrs(ctx, level, "webhook configuration request", o.event.attrs()...)
}

func (o *operation) source(ctx context.Context) netip.Addr {
	if source, ok := SourceAddr(ctx); ok {
		return source
	}
	peer, _ := netip.ParseAddrPort(o.peer) // "" in a call from Go, "@" on a Unix socket
	return peer.Addr().Unmap().WithZone("")
}

// signIn asks the verifier which client the credentials sign in.
func (o *operation) signIn(ctx context.Context, id, secret string) (Client, *apiError) {
	o.secrets[1] = secret
	client, err := o.h.verifier.Verify(ctx, id, secret)
	if err != nil {
		e := verifierError(err)
		if !o.h.options.OmitPresentedID && (e.code == codeInvalidClient || e.code == codeTooManyRequests) {
			o.event.PresentedID = shownID(id, secret)
		}
		return Client{}, e
	}
	if !validClientID(client.ID) {
		return Client{}, serverError(errClientID)
	}
	o.event.Client, o.event.Credential, o.event.SecretName = client.ID, id, client.SecretName
	return client, nil
}

// webhook returns the webhook in effect for the entity of a scope.
func (o *operation) webhook(ctx context.Context, scope Scope) (Webhook, *apiError) {
	o.event.Scope = scope
	if e := o.checkConfigured(ctx, scope); e != nil {
		return Webhook{}, e
	}
	return o.resolve(ctx, scope.Entity())
}

// page returns a page of the client's overrides.
func (o *operation) page(ctx context.Context, after string, limit int) (Page, *apiError) {
	page, err := o.h.lister.List(ctx, o.event.Client, after, limit)
	if err != nil {
		return Page{}, storeError(err)
	}
	return page, nil
}

// change sets or unsets, as the operation says.
func (o *operation) change(ctx context.Context, scope Scope) *apiError {
	if o.event.Operation == opNameSet {
		return o.set(ctx, scope)
	}
	return o.unset(ctx, scope)
}

// set checks the URL before it applies the change, so the store never sees an unchecked one.
func (o *operation) set(ctx context.Context, scope Scope) *apiError {
	o.event.Scope = scope
	if err := o.h.options.Policy.CheckContext(ctx, o.url.Reveal()); err != nil {
		return policyError(err)
	}
	if e := o.checkExists(ctx, scope); e != nil {
		return e
	}
	if e := o.probe(ctx); e != nil {
		return e
	}
	return o.apply(ctx, SetChange(o.event.Client, scope, o.url))
}

func (o *operation) unset(ctx context.Context, scope Scope) *apiError {
	o.event.Scope = scope
	if e := o.checkConfigured(ctx, scope); e != nil {
		return e
	}
	return o.apply(ctx, UnsetChange(o.event.Client, scope))
}

// checkExists refuses a single entity that the host doesn't know.
func (o *operation) checkExists(ctx context.Context, scope Scope) *apiError {
	if o.h.options.EntityExists == nil || scope.IsAll() {
		return nil
	}
	known, err := o.h.options.EntityExists(ctx, o.event.Client, scope.Entity())
	switch {
	case err != nil:
		return unavailable(fmt.Errorf("EntityExists: %w", err))
	case !known:
		return &apiError{code: codeUnknownEntity, description: "There is no such entity"}
	}
	return nil
}

// checkConfigured is like checkExists, but it lets you read and unset an override that the
// client set while the entity existed.
func (o *operation) checkConfigured(ctx context.Context, scope Scope) *apiError {
	refusal := o.checkExists(ctx, scope)
	if refusal == nil || refusal.code != codeUnknownEntity {
		return refusal
	}
	hook, e := o.resolve(ctx, scope.Entity())
	if e != nil {
		return e
	}
	if hook.Source == SourceOverride || hook.Source == SourceOff {
		return nil
	}
	return refusal
}

func (o *operation) resolve(ctx context.Context, entity string) (Webhook, *apiError) {
	hook, err := o.h.store.Resolve(ctx, o.event.Client, entity)
	if err != nil {
		return Webhook{}, storeError(err)
	}
	return hook, nil
}

// delivery returns how the deliveries to hook go. The State is "" if nothing is known. hook
// must be the webhook in effect.
func (o *operation) delivery(ctx context.Context, entity string, hook Webhook) (DeliveryStatus, *apiError) {
	if o.h.options.DeliveryStatus == nil || hook.URL.IsZero() {
		return DeliveryStatus{}, nil
	}
	o.url = hook.URL // an error or a panic may quote it
	d, err := o.h.options.DeliveryStatus(ctx, o.event.Client, entity, hook)
	switch {
	case err != nil:
		return DeliveryStatus{}, unavailable(fmt.Errorf("DeliveryStatus: %w", err))
	case d.State != "" && !slices.Contains(deliveryStates, d.State), d.Reason != "" && !slices.Contains(deliveryReasons, d.Reason):
		return DeliveryStatus{}, serverError(fmt.Errorf("DeliveryStatus returned an unknown state %q or reason %q: see DeliveryWords", d.State, d.Reason))
	case d.State == "":
		return DeliveryStatus{}, nil
	}
	return d, nil
}

// probe checks that the URL can be reached, if the mode asks for it.
func (o *operation) probe(ctx context.Context) *apiError {
	if o.h.options.ProbeMode == ProbeOff {
		return nil
	}
	probeCtx, cancel := context.WithTimeout(ctx, o.h.options.ProbeTimeout)
	defer cancel()
	err := o.h.options.Prober.Probe(probeCtx, o.event.Client, o.url)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // the whole request ended, not just the probe
		return unavailable(err)
	case o.h.options.ProbeMode == ProbeWarn:
		o.event.Err = o.redactedError(err)
		return nil
	}
	if wait, ok := askedToWait(err); ok {
		return throttled(err, wait)
	}
	if errors.Is(err, egress.ErrUnavailable) {
		return unavailable(err)
	}
	return &apiError{code: codeWebhookUnreachable, description: "The webhook URL could not be reached", cause: err}
}

// apply applies the checked change, unless the request has ended.
func (o *operation) apply(ctx context.Context, c Change) *apiError {
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	c.Time = o.h.changeTime()
	if err := o.h.store.Apply(ctx, c); err != nil {
		return storeError(err)
	}
	return nil
}

// performPanic returns a panic of the operation. If the client hasn't signed in yet, it
// withholds the text, for the reason that verifierError gives.
func (o *operation) performPanic(value any) *panicError {
	p := o.panicked(value)
	if o.event.Client != "" {
		return p
	}
	p.text = fmt.Sprintf("value of type %T, in the verifier", value)
	var moved interface{ Stack() []byte } // from the goroutine of a shared check
	if err, ok := value.(error); ok && errors.As(err, &moved) {
		p.stack = moved.Stack()
	}
	return p
}

func (o *operation) panicked(value any) *panicError {
	err, _ := value.(error)
	return &panicError{text: o.redacted(fmt.Sprint(value)), stack: debug.Stack(), abort: errors.Is(err, http.ErrAbortHandler)}
}

// recoverReport logs a panic of OnEvent or of the logger. It doesn't change the outcome.
func (o *operation) recoverReport(ctx context.Context) {
	value := recover()
	if value == nil {
		return
	}
	defer func() { _ = recover() }() // the logger can panic, too
	p := o.panicked(value)
	o.h.options.Logger.ErrorContext(ctx, "webhook configuration panic in OnEvent or Logger", "error", p.Error(), "stack", string(p.stack))
}

// redacted removes secrets from a text of another package, such as a driver that quotes its
// arguments: the client's secret, the token that holds it, and the path and query of the URL.
func (o *operation) redacted(text string) string {
	return redact.Text(text, o.secrets[:], o.url.Reveal(), o.url.String())
}

func (o *operation) redactedError(err error) error {
	// Until the client signs in, all texts are fixed, and a caller could choose a secret that
	// equals one of them.
	if err == nil || o.event.Client == "" {
		return err
	}
	text := err.Error()
	clean := o.redacted(text)
	if clean == text {
		return err
	}
	return redact.Error(clean, err)
}
