package storetest

import (
	"context"
	"errors"
)

// seenThroughOthers: what each handle has seen before is another thing after every
// change, whichever handle it was made through.
func seenThroughOthers(ctx context.Context, e Env) error {
	handles, err := e.handles(3)
	if err != nil {
		return err
	}
	scenes := make([]*play, len(handles))
	for n, handle := range handles {
		scenes[n] = begin(ctx, handle)
	}
	expect := func(expectOne func(*play)) error {
		var all []error
		for _, p := range scenes {
			expectOne(p)
			all = append(all, p.err)
		}
		return errors.Join(all...)
	}
	if err := expect(func(p *play) { p.expectNone(client, "e1") }); err != nil {
		return err
	}
	for n := range 3 * len(scenes) {
		p := scenes[n%len(scenes)]
		p.set(client, "e1", hookURL(n))
		if err := expect(func(p *play) { p.expectURL(client, "e1", override, hookURL(n)) }); err != nil {
			return err
		}
		p.setAll(client, hookURL(-n))
		if err := expect(func(p *play) { p.expectURL(client, "e1", base, hookURL(-n)) }); err != nil {
			return err
		}
		p.unset(client, "e1")
		if err := expect(func(p *play) { p.expectOff(client, "e1") }); err != nil {
			return err
		}
	}
	return nil
}

func seenAtOneMomentThroughOthers(ctx context.Context, e Env) error {
	handles, err := e.handles(3)
	if err != nil {
		return err
	}
	return seenByAll(ctx, handles)
}

func noneLostThroughOthers(ctx context.Context, e Env) error {
	handles, err := e.handles(4)
	if err != nil {
		return err
	}
	return noneLostBy(ctx, handles)
}
