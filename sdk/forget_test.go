package sdk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

func TestARequestMeansASessionOrATimeWithBothEnds(t *testing.T) {
	bySession := &abi.ForgetRequest{SessionID: "s1"}
	require.True(t, sdk.Forgets(bySession, "s1", ""))
	require.False(t, sdk.Forgets(bySession, "s10", "2026-01-02T10:00:00Z"))
	byTime := &abi.ForgetRequest{From: "2026-01-02T10:00:00Z", To: "2026-01-02T12:00:00+01:00"}
	for at, want := range map[string]bool{"2026-01-02T09:59:59Z": false, "2026-01-02T11:00:00+01:00": true,
		"2026-01-02T11:00:00Z": true, "2026-01-02T11:00:00.001Z": false, "yesterday": false} {
		require.Equal(t, want, sdk.Forgets(byTime, "s1", at), at)
	}
	require.False(t, sdk.Forgets(&abi.ForgetRequest{EventIDs: []string{"e"}}, "s1", "2026-01-02T10:00:00Z"))
}
