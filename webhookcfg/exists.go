package webhookcfg

import (
	"context"
	"fmt"
)

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
