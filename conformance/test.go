package conformance

import (
	"slices"
	"strings"
	"testing"
)

// Test runs the kit as a Go test: one subtest per clause, named by its number and words. A clause that is not green
// fails its subtest, also a pending or inconclusive one, since it proves nothing. A clause that does not apply is
// skipped.
//
// `go test -run 'TestConformance/clause_7:'` checks one clause.
func Test(t *testing.T, target Target) {
	t.Helper()
	TestWith(t, target, Options{})
}

// TestWith is Test with options.
func TestWith(t *testing.T, target Target, o Options) {
	t.Helper()
	if o.CacheDir == "" {
		o.CacheDir = t.TempDir()
	}
	for _, c := range clauses() {
		if len(o.Clauses) > 0 && !slices.Contains(o.Clauses, c.number) {
			continue
		}
		title := ClauseReport{Number: c.number, Words: c.words}
		t.Run(title.Title(), func(t *testing.T) {
			one := o
			one.Clauses = []int{c.number}
			testClause(t, o.Again, func() (*Report, error) { return Run(t.Context(), target, one) })
		})
	}
}

// tester is what testClause needs of a test.
type tester interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Skip(args ...any)
}

// testClause fails the test if the only clause of a report is not green, in the second run if there may be one.
func testClause(t tester, again bool, run func() (*Report, error)) {
	t.Helper()
	report, err := run()
	if err != nil {
		t.Fatal(err)
		return
	}
	result := report.Clauses[0]
	if result.Verdict == NotApplicable {
		t.Skip(result.skipReason())
		return
	}
	for _, p := range result.Parts {
		t.Logf("%s: %s (%s)", p.Verdict, p.Words, p.Reason)
	}
	t.Logf("%d ms, %d native calls", result.MS, result.Cost.NativeCalls)
	switch {
	case result.Verdict.Green():
	case again:
		t.Logf("CHECKED ONCE MORE after %s: %v", result.Verdict, result.Bad())
		testClause(t, false, run)
	default:
		t.Errorf("%s: %v", result.Verdict, result.Bad())
	}
}

// skipReason is the line that a skipped clause leaves in the output of go test: "not applicable: there is no backend".
// The whole reason is in the manifest, and the parts are in the reports of `memhost conformance`.
func (c *ClauseReport) skipReason() string {
	why := c.Declared
	for i := 0; why == "" && i < len(c.Parts); i++ {
		why = c.Parts[i].Reason
	}
	const longest = 80 // bytes, so that the line fits a terminal
	return "not applicable: " + short(strings.Join(strings.Fields(why), " "), longest)
}
