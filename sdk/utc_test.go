package sdk_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/sdk"
)

// TestUTC compares the arithmetic with package time.
func TestUTC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := time.FixedZone("", 60*rapid.IntRange(-14*60, 14*60).Draw(t, "offset"))
		at := time.Unix(rapid.Int64Range(-60e9, 250e9).Draw(t, "at"), 0).In(zone)
		if at.Year() >= 1 && at.Year() <= 9998 {
			require.Equal(t, at.UTC().Format(time.RFC3339), sdk.UTC(at.Format(time.RFC3339)))
		}
	})
	for _, same := range []string{"", "2026-03-01T09:30:00Z", "2026-13-01T09:30:00+01:00"} {
		require.Equal(t, same, sdk.UTC(same))
	}
}
