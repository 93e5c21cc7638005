package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
)

func TestTimesAreSentInUTC(t *testing.T) {
	for given, want := range map[string]string{
		"2025-03-01T10:30:00+01:00":         "2025-03-01T09:30:00Z",
		"2025-03-01T09:30:00.1234567891Z":   "2025-03-01T09:30:00.123456Z", // Python keeps microseconds
		"2025-03-01t09:30:00.500z":          "2025-03-01T09:30:00.5Z",
		"9999-12-31T23:59:59Z":              "9999-12-31T23:59:59Z",
		"2025-03-01T09:30:00.0000001+00:00": "2025-03-01T09:30:00Z",
		"2024-12-31T23:30:00-01:00":         "2025-01-01T00:30:00Z",
		"2025-03-01T09:30:00.000000000Z":    "2025-03-01T09:30:00Z",
	} {
		got, _, err := utc("timestamp", given)
		require.NoError(t, err)
		assert.Equal(t, want, got, given)
	}
	for _, given := range []string{"0000-05-01T00:00:00Z", "9999-12-31T23:59:59-01:00", "2025-03-01T09:30:00",
		"yesterday"} {
		_, _, err := utc("timestamp", given)
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), given)
	}
}

func TestFormatIsThatOfTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-62135596799, 253402300798).Draw(t, "s"),
			rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
		require.Equal(t, at.Format("2006-01-02T15:04:05.999999999Z"), format(at, 9))
		require.Equal(t, at.Format("2006-01-02T15:04:05.999999Z"), format(at, 6))
		require.Equal(t, at.Format("2006-01-02T15:04:05.999Z"), format(at, 3))
	})
}

func momentText(s string) string { return momentOf(s).text }

func TestStampReadsWhatServersAndNeo4jWrite(t *testing.T) {
	assert.Equal(t, "2025-03-01T09:30:00Z", momentText("2025-03-01T09:30:00Z[UTC]"))
	assert.Equal(t, "2026-11-21T04:10:56.948948Z", momentText("2026-11-21T04:10:56.948948+00:00"))
	assert.Empty(t, momentText("2025-03-06T10:00:00"), "a time without zone cannot be placed")
	assert.Empty(t, momentText(""))
}

func TestMomentsAreInUTCOrHaveNoText(t *testing.T) {
	for given, want := range map[string]string{
		"2025-03-01T09:30:00Z":             "2025-03-01T09:30:00Z",
		"2025-12-28T23:59:59+00:00":        "2025-12-28T23:59:59Z",
		"2026-11-21T04:10:56.948948+00:00": "2026-11-21T04:10:56.948948Z",
		"2025-03-01T09:30:00+01:00":        "2025-03-01T08:30:00Z",
		"2025-03-01t09:30:00z":             "2025-03-01T09:30:00Z",
		"2025-03-29T09:30:00Z":             "2025-03-29T09:30:00Z",
	} {
		assert.Equal(t, want, momentText(given))
	}
	assert.False(t, momentOf("").isSet)
	for _, other := range []string{"2025-03-01", "2025-03-01T09:30:00", "2025-03-01T09:30:00.Z", "2025-00-01T09:30:00Z",
		"2025-13-01T09:30:00Z",
		"2025-03-00T09:30:00Z", "2025-02-29T09:30:00Z", "2025-03-01T24:30:00Z", "2025-03-01T09:60:00Z",
		"2025-03-01T09:30:60Z",
		"2025/03-01T09:30:00Z", "202x-03-01T09:30:00Z", "2025-03-1:T09:30:00Z", "2025-03-01T09:30-00Z",
		"2025-03-01T09:30:0\u00e9Z",
		"0000-05-01T00:00:00Z", "9999-12-31T23:59:59-01:00"} {
		m := momentOf(other)
		assert.Empty(t, m.text, other)
		assert.True(t, m.isSet, other)
	}
}

func TestMomentsAreReadAsTheContractReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-62135596799, 253402300798).Draw(t, "s"),
			rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
		other := time.Unix(at.Unix()+rapid.Int64Range(-1, 1).Draw(t, "apart"),
			rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
		for _, layout := range []string{"2006-01-02T15:04:05.999999Z", "2006-01-02T15:04:05.999999+00:00",
			"2006-01-02T15:04:05.999Z[UTC]"} {
			m, n := momentOf(at.Format(layout)), momentOf(other.Format(layout))
			cut := time.Microsecond
			if layout[len(layout)-1] == ']' {
				cut = time.Millisecond
			}
			read, err := abi.ParseTime(m.text)
			require.NoError(t, err)
			require.True(t, read.Equal(at.Truncate(cut)), m.text)
			require.Equal(t, at.Truncate(cut).Before(other.Truncate(cut)), m.micros < n.micros, "%s %s", m.text, n.text)
		}
	})
}

func FuzzMoments(f *testing.F) {
	f.Add("2025-02-28T09:30:00.5+00:00")
	f.Add("2025-02-30T09:30:00Z")
	f.Fuzz(func(t *testing.T, s string) {
		if m := momentOf(s); m.text != "" {
			if _, err := abi.ParseTime(m.text); err != nil {
				t.Fatalf("%q became %q: %v", s, m.text, err)
			}
		}
	})
}
