package moving

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
)

func TestABackfillThatIsWatchedSaysWhyItWaits(t *testing.T) {
	b := &report.Backfill{State: report.FollowerWaiting, Progress: report.FollowerProgress{Done: 3, Events: 9, Open: 1}}
	require.Equal(t, "waiting, 3 of 9 events", watchedText(b))
	b.Progress.Error = abi.NewError(abi.CodeUnavailable, "archive: a segment is gone")
	require.Contains(t, watchedText(b), "\narchive: a segment is gone")
}
