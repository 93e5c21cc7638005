package conformance

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// recordingTB is a testing.TB that keeps its messages.
type recordingTB struct{ log, failed, ended []string }

func (r *recordingTB) Helper()                   {}
func (r *recordingTB) Logf(f string, a ...any)   { r.log = append(r.log, fmt.Sprintf(f, a...)) }
func (r *recordingTB) Errorf(f string, a ...any) { r.failed = append(r.failed, fmt.Sprintf(f, a...)) }
func (r *recordingTB) Fatal(a ...any)            { r.ended = append(r.ended, fmt.Sprint(a...)) }
func (r *recordingTB) Skip(a ...any)             { r.ended = append(r.ended, fmt.Sprint(a...)) }
func verdicts(v ...Verdict) func() (*Report, error) {
	return func() (*Report, error) {
		if len(v) == 0 {
			return nil, errors.New("no server")
		}
		next := v[0]
		v = v[1:]
		return &Report{Clauses: []ClauseReport{{Verdict: next, Parts: []PartReport{{Verdict: next, Words: "a part"}}}}}, nil
	}
}

func TestAClauseMayBeCheckedOnceMoreAndTheLogSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		again             bool
		run               []Verdict
		failures, checked int
	}{
		"green at once":           {true, []Verdict{Pass}, 0, 0},
		"green the second time":   {true, []Verdict{Pending, Pass}, 0, 1},
		"not green twice":         {true, []Verdict{Fail, Fail}, 1, 1},
		"only one run is allowed": {false, []Verdict{Pending, Pass}, 1, 0},
	} {
		r := new(recordingTB)
		testClause(r, c.again, verdicts(c.run...))
		assert.Len(t, r.failed, c.failures, name)
		checked := 0
		for _, line := range r.log {
			if strings.HasPrefix(line, "CHECKED ONCE MORE") {
				checked++
			}
		}
		assert.Equal(t, c.checked, checked, name)
	}
	r := new(recordingTB)
	testClause(r, true, verdicts())
	assert.Equal(t, []string{"no server"}, r.ended)
}
