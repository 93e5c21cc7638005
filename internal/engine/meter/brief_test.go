package meter

import "testing"

// brief tells whether the long proofs are left out: with -short, and under the race detector, which makes them ten
// times as long and has nothing to find in a rewriter that shares nothing. CI runs them without it.
func brief() bool { return testing.Short() || raceEnabled }
