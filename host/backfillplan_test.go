package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/host/report"
)

// TestAPlanNamesTheEarliestAndTheLatestTime: events are archived in the order of arrival, which differs from the order
// of their times after an import of old events, and their times have different zones.
func TestAPlanNamesTheEarliestAndTheLatestTime(t *testing.T) {
	plan := new(report.BackfillPlan)
	for _, at := range []string{"2026-03-02T09:00:00Z", "2026-03-02T09:30:00+01:00", "2025-01-01T00:00:00Z",
		"2026-03-02T08:30:00-02:00", "2025-06-01T00:00:00Z"} {
		noteTime(plan, at)
	}
	require.Equal(t, "2025-01-01T00:00:00Z", plan.Oldest)
	require.Equal(t, "2026-03-02T08:30:00-02:00", plan.Newest)
}
