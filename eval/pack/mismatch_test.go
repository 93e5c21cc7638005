package pack

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMistakesInAProbeAreToldInTheWordsOfTheFile: messages never mention Go types.
func TestMistakesInAProbeAreToldInTheWordsOfTheFile(t *testing.T) {
	for text, want := range map[string]string{
		`{"gold":{"answers":["x"]}}`:      "a string in gold.answers, want an array of strings",
		`{"gold":{"answers":"x"}}`:        "a string in gold.answers, want an array of arrays of strings",
		`{"gold":{"answerable":"yes"}}`:   "a string in gold.answerable, want true or false",
		`{"gold":{"stale":[1]}}`:          "a number in gold.stale, want an object",
		`{"gold":[]}`:                     "an array in gold, want an object",
		`{"after_session":"2"}`:           "a string in after_session, want a whole number",
		`{"query":true}`:                  "true or false in query, want a string",
		`{"gold":{"evidence":[["a",1]]}}`: "a number in gold.evidence, want a string",
		`[]`:                              "an array, want an object",
		`{"qerry":""}`:                    `unknown field "qerry"`,
	} {
		err := decode([]byte(text), new(Probe))
		require.EqualError(t, err, want, text)
	}
	require.Equal(t, "x", Mismatch(errors.New("x")))
}
