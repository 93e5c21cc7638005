package main

import (
	"strconv"

	"github.com/memhost/memhost/abi/jsontext"
	"github.com/memhost/memhost/abi/words"
)

// readNumeral is a number as it stands there; any other value is skipped and gives "".
func readNumeral(d *jsontext.Decoder) (string, error) {
	if d.Next() != jsontext.Number {
		return "", d.Skip()
	}
	before := *d
	raw, err := d.Raw()
	if err == nil && !isFraction(words.View(raw)) {
		_, err = before.Float64() // that it is one of 64 bits
	}
	return words.View(raw), err
}

// isFraction tells that a numeral is 0. and digits: such ones are in the order of their texts.
func isFraction(numeral string) bool {
	if len(numeral) < 3 || numeral[0] != '0' || numeral[1] != '.' {
		return false
	}
	const letter = 0x40 // a bit of every letter, and of nothing else in a numeral
	n := len(numeral)
	if n < 8 {
		for i := range n {
			if numeral[i]&letter != 0 {
				return false
			}
		}
		return true
	}
	found := words.At(numeral, n-8)
	for i := 0; i < n-8; i += 8 {
		found |= words.At(numeral, i)
	}
	return found&(letter*words.Each) == 0
}

// greater tells whether the number a is greater than b.
func greater(a, b string) bool {
	if a == b {
		return false
	}
	if isFraction(a) && isFraction(b) {
		return a > b
	}
	return numeralValue(a) > numeralValue(b)
}

// numeralValue is the value of what readNumeral read.
func numeralValue(numeral string) float64 {
	x, _ := strconv.ParseFloat(numeral, 64) // it has been read before
	return x
}
