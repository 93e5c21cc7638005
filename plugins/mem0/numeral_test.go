package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi/jsontext"
)

func TestGreaterComparesNumbers(t *testing.T) {
	numeral := rapid.OneOf(rapid.StringMatching(`0\.[0-9]{1,20}`), rapid.StringMatching(`-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?`))
	rapid.Check(t, func(t *rapid.T) {
		a, b := numeral.Draw(t, "a"), numeral.Draw(t, "b")
		read, err := readNumeral(jsontext.DecodeStr(a))
		if err != nil || read != a {
			t.Fatalf("%q, %v", read, err)
		}
		// Two texts may be the same number: which of them is kept shows nowhere.
		if x, y := numeralValue(a), numeralValue(b); greater(a, b) != (x > y) && x != y {
			t.Fatalf("%s > %s", a, b)
		}
	})
	_, err := readNumeral(jsontext.DecodeStr("1e999"))
	assert.ErrorContains(t, err, "not a number of 64 bits at byte 0")
}
