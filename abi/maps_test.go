package abi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMapsAreWrittenInTheOrderOfTheirKeys(t *testing.T) {
	r := &HTTPRequest{Route: "r", Params: map[string]string{"b": "3", "a": "2"}}
	assert.Equal(t, `{"route":"r","params":{"a":"2","b":"3"}}`, string(Marshal(r)))

	params := func(text string) (map[string]string, error) {
		var r HTTPRequest
		err := Unmarshal([]byte(`{"params":`+text+`}`), &r)
		return r.Params, err
	}
	read, err := params(` { "x" : "\u00e9", "y":null , "x":"last"} `)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"x": "last", "y": ""}, read)
	for _, wrong := range []string{`[]`, `"a"`, `{"a":1}`, `{"a":{}}`, `{"a"}`, `{`, ``} {
		_, err := params(wrong)
		assert.Error(t, err, wrong)
	}
	read, err = params(`null`)
	require.NoError(t, err)
	assert.Nil(t, read)
}
