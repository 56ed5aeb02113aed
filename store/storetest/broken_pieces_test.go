package storetest_test

import (
	"context"
	"fmt"

	"example.com/go-webhookcfg/webhookcfg"
)

// brokenPieces are stores that read or drop many overrides a piece at a time.
func brokenPieces() (all []flaw) {
	for _, size := range []int{8, 64, 256, 500, 1000} {
		all = append(all, flaw{fmt.Sprintf("reads a page %d overrides at a time", size), "lister returns one state", func(s *simple) webhookcfg.Store {
			return readsPieces(s, size)
		}, nil})
	}
	for _, size := range []int{256, 500, 1000, 1024} {
		all = append(all,
			flaw{fmt.Sprintf("drops %d overrides at a time, and is interrupted", size), "03 an interrupted change is whole or absent", func(s *simple) webhookcfg.Store {
				return dropsChunks(s, size, context.Context.Err)
			}, nil},
			flaw{fmt.Sprintf("drops %d overrides at a time, which shows", size), "14 a change becomes visible at one moment", func(s *simple) webhookcfg.Store {
				return dropsChunks(s, size, pauseNil)
			}, nil},
			flaw{fmt.Sprintf("unset-all drops %d overrides at a time, which shows", size), "14 a change becomes visible at one moment", func(s *simple) webhookcfg.Store {
				chunks := dropsChunks(s, size, pauseNil)
				return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
					if isSet(c) {
						return s.Apply(ctx, c)
					}
					return chunks.Apply(ctx, c)
				}}
			}, nil})
	}
	return all
}

// readsPieces reads a page a number of overrides at a time.
func readsPieces(s *simple, size int) webhookcfg.Store {
	return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
		page, err := s.List(ctx, client, after, min(limit, size))
		for err == nil && page.Next != "" && len(page.Overrides) < limit {
			pause()
			var rest webhookcfg.Page
			rest, err = s.List(ctx, client, page.Next, min(limit-len(page.Overrides), size))
			page.Overrides, page.Next = append(page.Overrides, rest.Overrides...), rest.Next
		}
		return page, err
	}}
}
