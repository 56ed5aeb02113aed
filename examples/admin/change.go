package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/examples/internal/filled"
	"example.com/go-webhookcfg/examples/internal/textfile"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
)

// policyFlags are the flags for the policy. It has to be the service's.
func policyFlags(s *session, flags *flag.FlagSet) {
	flags.BoolVar(&s.policy.AllowHTTP, "allow-http", false, "allow http URLs in addition to https")
	flags.Func("deny-prefix", "refuse the addresses in `CIDR`, even if -allow-prefix has them; repeatable; audit looks up no names", func(text string) error {
		prefix, err := netip.ParsePrefix(text)
		s.policy.DenyPrefixes = append(s.policy.DenyPrefixes, prefix)
		return err
	})
	flags.Func("ports", "allow only these `PORTS`, separated by commas; repeatable", func(text string) error {
		for port := range strings.SplitSeq(text, ",") {
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil || n == 0 {
				return fmt.Errorf("%q is not a port", port)
			}
			s.policy.Ports = append(s.policy.Ports, uint16(n))
		}
		return nil
	})
	flags.Func("allow-prefix", "allow the non-public addresses in `CIDR`, such as 10.1.0.0/16; repeatable", func(text string) error {
		prefix, err := netip.ParsePrefix(text)
		s.policy.AllowPrefixes = append(s.policy.AllowPrefixes, prefix)
		return err
	})
}

func unsetFlags(s *session, flags *flag.FlagSet) {
	flags.BoolVar(&s.all, "all", false, "change all entities of the client, instead of ENTITY")
	s.actor = currentUser()
	filled.Var(flags, &s.actor, "actor", "your `name`, for the log record of the change")
}

func setFlags(s *session, flags *flag.FlagSet) {
	unsetFlags(s, flags)
	policyFlags(s, flags)
	flags.BoolVar(&s.unprobed, "no-probe", false, "don't check that the URL can be reached from here")
}

func currentUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return cmp.Or(os.Getenv("USER"), "operator")
}

// scope returns what to change. A missing entity never means all.
func (s *session) scope() (webhookcfg.Scope, error) {
	if s.all == (len(s.args) > 2) {
		return webhookcfg.Scope{}, errors.New("give either an ENTITY or -all")
	}
	if s.all {
		return webhookcfg.All(), nil
	}
	return webhookcfg.Entity(s.args[2]), nil
}

func set(ctx context.Context, s *session) (int, error) {
	return s.change(ctx, func(ctx context.Context, st *opened, h *webhookcfg.Handler, scope webhookcfg.Scope, confirm func() error) error {
		if err := s.checkSet(ctx, st); err != nil {
			return err
		}
		url, err := s.ask("URL: ") // not an argument, since others can see those
		if err != nil {
			return err
		}
		if err := textfile.Check(url); err != nil {
			return fmt.Errorf("the URL: %w", err)
		}
		if !s.all && !isTerminal(s.keyboard) {
			if err := s.endOfInput(); err != nil {
				return err
			}
		}
		if err := confirm(); err != nil {
			return err
		}
		return h.Set(ctx, s.args[1], scope, url)
	})
}

func unset(ctx context.Context, s *session) (int, error) {
	return s.change(ctx, func(ctx context.Context, _ *opened, h *webhookcfg.Handler, scope webhookcfg.Scope, confirm func() error) error {
		if err := confirm(); err != nil {
			return err
		}
		return h.Unset(ctx, s.args[1], scope)
	})
}

// change calls do with a handler for the store. The function confirm asks for a confirmation
// if the change is for all entities.
func (s *session) change(ctx context.Context, do func(ctx context.Context, st *opened, h *webhookcfg.Handler, scope webhookcfg.Scope, confirm func() error) error) (int, error) {
	scope, err := s.scope()
	if err != nil {
		return wrongUsage, err
	}
	return success, s.useFirst(ctx, func(st *opened) error {
		o := &webhookcfg.Options{Policy: &s.policy, Logger: s.logger(slog.LevelInfo)}
		if s.unprobed {
			o.ProbeMode = webhookcfg.ProbeOff
		}
		h, err := webhookcfg.NewHandler(st, nobody{}, o)
		if err != nil {
			return err
		}
		confirm := func() error {
			if !s.all {
				return nil
			}
			return s.confirmClient(ctx, st, "You are about to change all of its entities.")
		}
		return do(webhookcfg.ContextWithActor(ctx, s.actor), st, h, scope, confirm)
	})
}

// nobody signs nobody in, because the handler serves no requests.
type nobody struct{}

func (nobody) Verify(context.Context, string, string) (webhookcfg.Client, error) {
	return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
}

// defaultTimeout is the default of [webhookcfg.Options.Timeout], for as long as which a request that
// signed in before a revocation can go on. The service can have another one.
const defaultTimeout = 10 * time.Second

func erase(ctx context.Context, s *session) (int, error) {
	return success, s.useFirst(ctx, func(st *opened) error {
		client := s.args[1]
		if err := s.confirmClient(ctx, st, "You are about to remove them. Revoke its credentials first, of all its ids, and wait until every process has noticed."); err != nil {
			return err
		}
		if _, _, err := s.queue(ctx, st); err != nil { // before the webhooks are gone
			return err
		}
		if err := admin.Erase(ctx, st, client); err != nil {
			return fmt.Errorf("%w; run erase again to complete it", err)
		}
		n, what, err := s.eraseQueue(ctx, st, client)
		if err != nil {
			return fmt.Errorf("%w; run erase again to complete it", err)
		}
		return s.print(eraseRecord{client, n}, "erased %s (%s); backups and logs can still have it, see README.md\nIf its credentials were revoked less than the service's Options.Timeout ago (%v by default), a request that signed in before can still set a webhook: run erase again after that", printable(client), what, defaultTimeout)
	})
}

// eraseRecord is an erased client in JSON.
type eraseRecord struct {
	Erased string `json:"erased"`
	// Notifications is nil if no queue was found.
	Notifications *int `json:"notifications,omitempty"`
}
