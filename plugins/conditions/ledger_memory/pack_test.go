package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func drawEntry(t *rapid.T) *entry {
	e := new(entry)
	for _, s := range e.texts() {
		*s = rapid.String().Draw(t, "text")
	}
	for _, n := range []*int64{(*int64)(&e.Confidence), &e.Revisions, &e.Confirmations, &e.Count} {
		*n = rapid.Int64Range(0, 1<<40).Draw(t, "number")
	}
	e.OrphanModify = rapid.Bool().Draw(t, "orphan")
	if n := rapid.IntRange(0, maxSources).Draw(t, "sources"); n > 0 {
		e.SourceEvents = rapid.SliceOfN(rapid.String(), n, n).Draw(t, "source")
	}
	return e
}

func TestAnEntryIsUnpackedAsItWasPackedAndADamagedOneIsNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEntry(t)
		packed := e.pack()
		back, err := unpack(packed)
		require.NoError(t, err)
		assert.Equal(t, e, back)
		packed[rapid.IntRange(0, len(packed)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		_, err = unpack(packed)
		assert.Error(t, err)
	})
}

func TestAnEntryOfAnEarlierVersionIsRead(t *testing.T) {
	e := &entry{identity: identity{Type: typeAdd, Subject: "user", Predicate: "likes", Object: "tea\n\"green\"",
		Scope: permanent, Sensitivity: normal}, Lineage: "l", EventID: "e",
		Confidence: 800, CreatedAt: "2026-01-12T09:00:00Z", SourceEvents: []string{"e1"}}
	back, err := unpack(e.encode())
	require.NoError(t, err)
	assert.Equal(t, e, back)
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte{})
	f.Add(new(entry).pack())
	f.Fuzz(func(t *testing.T, data []byte) {
		if e, err := unpack(data); err == nil && len(data) > 0 && data[0] == packedForm {
			_, err := unpack(e.pack())
			require.NoError(t, err)
		}
	})
}
