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

func TestFieldsAreFoundInAnyOrder(t *testing.T) {
	const known = "route params query"
	o := new(object)
	for _, c := range []struct {
		key  string
		want int
	}{{"route", 0}, {"query", 2}, {"query", 2}, {"params", 1}, {"route", 0}, {"", -1}, {"rout", -1}, {"oute", -1}, {"route ", -1}, {"route params", -1}, {"params query", -1}, {"quer", -1},
		{"queryx", -1}, {" ", -1}, {"params", 1}, {"query", 2}} {
		o.key = c.key
		assert.Equal(t, c.want, o.field(known), "%q", c.key)
	}
}
