package abi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPairsAreAnObjectInItsOrder(t *testing.T) {
	var p Pairs
	p.Set("b", "1")
	p.Set("a", "2")
	p.Set("b", "3")
	assert.JSONEq(t, `{"b":"3","a":"2"}`, string(Marshal(&p)))
	assert.Equal(t, `{"b":"3","a":"2"}`, string(Marshal(&p)), "in the order in which they were set")
	assert.Equal(t, "2", p.Get("a"))
	value, ok := p.Find("c")
	assert.False(t, ok)
	assert.Empty(t, value)
	assert.Empty(t, p.Get("c"))

	var read Pairs
	require.NoError(t, Unmarshal([]byte(` { "x" : "\u00e9", "y":null , "x":"last"} `), &read))
	assert.Equal(t, Pairs{{"x", "é"}, {"y", ""}, {"x", "last"}}, read)
	assert.Equal(t, "last", read.Get("x"), "as in a map")

	for _, wrong := range []string{`[]`, `"a"`, `{"a":1}`, `{"a":{}}`, `{"a"}`, `{`, ``} {
		assert.Error(t, Unmarshal([]byte(wrong), &read), wrong)
	}
	require.NoError(t, Unmarshal([]byte(`null`), &read))
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
