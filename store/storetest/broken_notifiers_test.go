package storetest_test

import (
	"context"

	"example.com/go-webhookcfg/webhookcfg"
)

func brokenWakers() []flaw {
	return []flaw{
		{"gives no hint", "notifier gives a hint after a change", func(s *simple) webhookcfg.Store {
			return broken{simple: s, notify: func(ctx context.Context) <-chan struct{} {
				never := make(chan struct{})
				context.AfterFunc(ctx, func() { close(never) })
				return never
			}}
		}, nil},
		{"closes the channel after the first hint", "notifier gives a hint after a change", func(s *simple) webhookcfg.Store {
			return broken{simple: s, notify: func(context.Context) <-chan struct{} {
				over := make(chan struct{})
				close(over)
				return over
			}}
		}, nil},
		{"leaves the channel open", "notifier closes the channel with the context", func(s *simple) webhookcfg.Store {
			return broken{simple: s, notify: func(ctx context.Context) <-chan struct{} {
				return s.Notify(context.WithoutCancel(ctx))
			}}
		}, nil},
		{"waits for its hints to be taken", "notifier holds up no change", waitsForTaker, nil},
	}
}

func waitsForTaker(s *simple) webhookcfg.Store {
	hints := make(chan struct{})
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			if err := s.Apply(ctx, c); err != nil {
				return err
			}
			select {
			case hints <- struct{}{}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		notify: func(context.Context) <-chan struct{} { return hints },
	}
}
