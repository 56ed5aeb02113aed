package sqltest

import (
	"testing"

	"example.com/go-webhookcfg/internal/integration/linearizable"
)

// hot has fewer histories than linearizable.Hot. Operations on a server take longer than in
// memory, so more of them overlap.
func hot() linearizable.Workload {
	workload := linearizable.Hot()
	workload.Histories = 12
	return workload
}

func spread() linearizable.Workload {
	workload := linearizable.Spread()
	workload.Operations, workload.Histories = 15, 6
	return workload
}

func (e Engine) linearizable(t *testing.T) {
	dsn := e.Shared(t).DSN()
	for name, workload := range map[string]linearizable.Workload{"hot": hot(), "spread": spread()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			linearizable.Check(t, workload, func(t testing.TB) []linearizable.Store { return e.replicas(t, dsn) })
		})
	}
}
