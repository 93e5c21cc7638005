package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAxesHaveRoundSteps(t *testing.T) {
	for _, c := range []struct{ most, want float64 }{{993, 200}, {1000, 200}, {3980, 1000}, {54.9, 10}, {17000, 5000}, {6, 1}, {6.1, 2}, {.9, .2}, {0, 1}} {
		assert.InDelta(t, c.want, roundStep(c.most), c.want*1e-9, "%v", c.most)
	}
}
