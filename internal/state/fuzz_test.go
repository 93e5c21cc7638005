package state

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzSpacesAndLogsDoNotMix: whatever bytes names and spaces consist of, data written under one is never visible under
// another.
func FuzzSpacesAndLogsDoNotMix(f *testing.F) {
	f.Add([]byte{}, []byte{3}, "a", "ab", "a")
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
		[]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe"), "\xff", "\xff\xff", "\xff")
	f.Add([]byte("0123456789abcdef"), []byte("0123456789abcdee"), "f", "\x00\x00\x00\x00\x00\x00\x00\x01", "")
	f.Add([]byte{1}, []byte{2}, "\x00", "\x00\x00\x01", "\x00")
	s, err := Open(f.TempDir(), Options{Durability: DurabilityProcess})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, s.Close()) })
	f.Fuzz(func(t *testing.T, spaceA, spaceB []byte, nameA, nameB, prefix string) {
		var a, b Space
		copy(a[:], spaceA)
		copy(b[:], spaceB)
		if a == b || nameA == nameB || nameA == "" || nameB == "" || len(nameA)+len(nameB)+len(prefix) > MaxName {
			return // they are the same
		}
		mustCommit(t, s, func(w *Batch) {
			w.DeletePrefix(a, "")
			w.DeletePrefix(b, "")
			for _, sp := range []Space{a, b} {
				for _, name := range []string{nameA, nameB} {
					w.Put(sp, name, []byte(sp.String()+name), AnyVersion)
					w.Append(sp, name, []byte(sp.String()+name))
				}
			}
		})
		check := func(sp Space, name string, there bool) {
			v, err := s.Get(ctx, sp, name)
			require.NoError(t, err)
			es, err := s.ReadLog(ctx, sp, LogQuery{Log: name})
			require.NoError(t, err)
			if !there {
				require.Zero(t, v)
				require.Zero(t, es)
				return
			}
			require.Equal(t, sp.String()+name, string(v.Data))
			require.Equal(t, Entries{Items: []Entry{{Seq: 1, Data: v.Data}}, Last: 1}, es)
		}
		keys := func(sp Space) (keys []string) {
			page, err := s.List(ctx, sp, ListQuery{})
			require.NoError(t, err)
			for _, i := range page.Items {
				keys = append(keys, i.Key)
			}
			return keys
		}
		both := []string{min(nameA, nameB), max(nameA, nameB)}
		require.Equal(t, both, keys(a))
		mustCommit(t, s, func(w *Batch) { w.DeletePrefix(a, prefix) })
		for _, name := range both {
			check(a, name, !strings.HasPrefix(name, prefix))
			check(b, name, true)
		}
		require.Equal(t, both, keys(b))
	})
}
