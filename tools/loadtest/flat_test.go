package loadtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlatComparesTheLastThirdWithTheSecond(t *testing.T) {
	for name, c := range map[string]struct {
		samples []float64
		flat    bool
	}{
		"constant":                          {[]float64{100, 100, 100, 100, 100, 100}, true},
		"grew while caches filled":          {[]float64{10, 50, 100, 100, 101, 102}, true},
		"fell":                              {[]float64{100, 100, 100, 100, 10, 10}, true},
		"at the limit":                      {[]float64{0, 0, 100, 100, 114, 114}, true},
		"beyond the limit":                  {[]float64{0, 0, 100, 100, 115, 115}, false},
		"grows all the time":                {[]float64{1, 20, 40, 60, 80, 100, 120, 140, 160}, false},
		"one peak in the last third":        {[]float64{5, 5, 5, 100, 100, 100, 100, 900, 100}, true},
		"a saw-tooth of the same height":    {[]float64{0, 9, 0, 9, 0, 9, 0, 9, 0, 9, 0, 9}, true},
		"few samples, one more in the last": {[]float64{100, 100, 100, 100, 300}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := series{name: name, samples: c.samples, share: 0.1, amount: 4}
			require.Equal(t, c.flat, s.flat(), "%s: thirds: %v", s.name, s.thirds())
		})
	}
}
