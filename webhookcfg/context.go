package webhookcfg

import "context"

type actorKey struct{}

// ContextWithActor returns a context that says who acts for a client, such as a signed-in user
// of your dashboard or an operator. Pass it to a method like [Handler.Set], or put it into a
// request before the handler serves it. It only changes [Event.Actor] and the attribute
// "actor" of the log record. Use an id that you're allowed to log.
func ContextWithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}
