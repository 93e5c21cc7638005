package abi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi/jsontext"
	"pgregory.net/rapid"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMembersAreAnObjectInItsOrder(t *testing.T) {
	var m Members[string]
	m.Set("b", "1")
	m.Set("a", "2")
	m.Set("b", "3")
	r := &HTTPRequest{Route: "r", Params: m}
	assert.Equal(t, `{"route":"r","params":{"b":"3","a":"2"}}`, string(Marshal(r)), "in the order in which they were set")
	assert.Equal(t, "2", m.Get("a"))
	value, ok := m.Find("c")
	assert.False(t, ok)
	assert.Empty(t, value)
	assert.Empty(t, m.Get("c"))

	params := func(text string) (Members[string], error) {
		var r HTTPRequest
		err := Unmarshal([]byte(`{"params":`+text+`}`), &r)
		return r.Params, err
	}
	read, err := params(` { "x" : "\u00e9", "y":null , "x":"last"} `)
	require.NoError(t, err)
	assert.Equal(t, Members[string]{{"x", "last"}, {"y", ""}}, read, "as in a map")
	for _, wrong := range []string{`[]`, `"a"`, `{"a":1}`, `{"a":{}}`, `{"a"}`, `{`, ``} {
		_, err := params(wrong)
		assert.Error(t, err, wrong)
	}
	read, err = params(`null`)
	require.NoError(t, err)
	assert.Nil(t, read)
}

// Members read what a map reads, and encoding/json sees the same object, however often a name is repeated.
func TestMembersReadWhatAMapReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom(strings.Split("abcdefghijklmnopqrstuvwxyz", "")), 0, 40).Draw(t, "names")
		want, order := map[string]BudgetUse{}, []string{}
		var e jsontext.Encoder
		e.ObjStart()
		for i, name := range names {
			if _, known := want[name]; !known {
				order = append(order, name)
			}
			sent := int64(i)
			use := BudgetUse{How: name, Sent: &sent}
			want[name] = use
			e.FieldStart(name)
			use.Encode(&e)
		}
		e.ObjEnd()
		var read Trace
		require.NoError(t, Unmarshal([]byte(`{"budget_applied":`+string(e.Bytes())+`}`), &read))
		got, inOrder := map[string]BudgetUse{}, []string{}
		for _, m := range read.BudgetApplied {
			got[m.Name] = m.Value
			inOrder = append(inOrder, m.Name)
		}
		require.Equal(t, want, got)
		require.Equal(t, order, inOrder)

		text, err := json.Marshal(read.BudgetApplied)
		require.NoError(t, err)
		var again Members[BudgetUse]
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, read.BudgetApplied, again)
	})
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

func TestMembersOfATypeWithoutACodecAreAnError(t *testing.T) {
	_, err := json.Marshal(Members[int]{{"a", 1}})
	require.ErrorContains(t, err, "no codec")
	var m Members[int]
	require.ErrorContains(t, json.Unmarshal([]byte(`{"a":1}`), &m), "no codec")
}
