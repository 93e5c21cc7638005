package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/memhost/memhost/eval/pack"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPageHasFourDigitsOfEachScore(t *testing.T) {
	scores := map[float64]float64{0: 0, 1: 1, 0.123456789: 0.1235, -12.3456: -12.35, 98765.4321: 98770, 1.23456e-9: 1.235e-9}
	for exact, want := range scores {
		c := &collection{}
		data, err := c.chunk([]*ProbeAnswers{{Probe: &pack.Probe{}, Answers: []Answered{{Items: []Item{{Score: &exact}, {}}}}}})
		require.NoError(t, err)
		packed, err := base64.StdEncoding.DecodeString(data)
		require.NoError(t, err)
		z, err := gzip.NewReader(bytes.NewReader(packed))
		require.NoError(t, err)
		var page struct{ Probes []*ProbeAnswers }
		require.NoError(t, json.NewDecoder(z).Decode(&page))
		items := page.Probes[0].Answers[0].Items
		require.Len(t, items, 2)
		assert.Equal(t, want, *items[0].Score)
		assert.Nil(t, items[1].Score)
	}
}
