package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestKeysSortNewestFirst(t *testing.T) {
	first, last := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Unix(),
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
	moment := rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(first-86400, last+86400).Draw(t, "second"),
			rapid.Int64Range(0, 999_999_999).Draw(t, "nanosecond"))
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := moment.Draw(t, "a"), moment.Draw(t, "b")
		m, n := rapid.Int64Range(1, 1<<47).Draw(t, "arrival of a"), rapid.Int64Range(1, 1<<47).Draw(t, "arrival of b")
		if rapid.Bool().Draw(t, "same time") {
			b = a
		}
		want := b.Compare(a)
		if want == 0 {
			want = int(min(1, max(-1, n-m)))
		}
		require.Equal(t, want, strings.Compare(turnKey(a, m), turnKey(b, n)))
		require.Len(t, turnKey(a, m), 37)
		require.Equal(t, !a.After(b), turnKey(a, m) > timeKey(b),
			"what lists behind the key of a time is what was said until then")
	})
}

func TestEventKeysAreInjectiveAndFit(t *testing.T) {
	long := strings.Repeat("x", 501)
	assert.NotEqual(t, eventKey(long), eventKey(long+"y"))
	assert.NotEqual(t, eventKey(long), eventKey(strings.TrimPrefix(eventKey(long), "event")))
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringN(1, -1, 512).Draw(t, "id")
		require.LessOrEqual(t, len(eventKey(id)), 512)
	})
}
