package service_test

import (
	"fmt"
	"os/exec"
	"testing"

	"golang.org/x/sync/errgroup"
)

// TestMigrateAtOnce: when several processes start with an empty database, all of them migrate it.
func TestMigrateAtOnce(t *testing.T) {
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	onEachEngine(t, func(t *testing.T, store string) {
		var all errgroup.Group
		for range 6 {
			all.Go(func() error {
				if output, err := exec.CommandContext(t.Context(), path, "-store", store, "migrate").CombinedOutput(); err != nil {
					return fmt.Errorf("%w: %s", err, output)
				}
				return nil
			})
		}
		if err := all.Wait(); err != nil {
			t.Error(err)
		}
	})
}
