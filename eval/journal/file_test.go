package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func now() string { return "2026-03-02T10:00:00Z" }

// written writes a journal of n records and returns its head.
func written(t *testing.T, path string, n int) string {
	t.Helper()
	w, err := Append(path, now, func(*Line) {})
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, w.Write(&Line{Kind: KindRecord, PersonaID: "ann", Session: 1,
			Record: &Record{EventID: fmt.Sprint("e", i), Status: abi.StatusCommitted, LatencyMS: 1.5}}))
	}
	require.NoError(t, w.Sync())
	require.NoError(t, w.Close())
	return w.Head()
}

func TestAJournalGoesOnWhereItStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), Name)
	written(t, path, 3)
	head := written(t, path, 2)
	lines, err := Verify(path, head)
	require.NoError(t, err)
	assert.EqualValues(t, 5, lines)
}

func TestALineThatWasCutOffIsDroppedAndSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), Name)
	written(t, path, 3)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	last := strings.LastIndexByte(strings.TrimSuffix(string(whole), "\n"), '\n') + 1
	for cut := last; cut < len(whole); cut++ {
		require.NoError(t, os.WriteFile(path, whole[:cut], 0o600))
		var seen []*Line
		w, err := Append(path, now, func(l *Line) { seen = append(seen, l) })
		require.NoError(t, err)
		require.NoError(t, w.Close())
		assert.Len(t, seen, 2)
		lines, err := Verify(path, w.Head())
		require.NoError(t, err)
		if cut == last {
			assert.EqualValues(t, 2, lines, "nothing was cut off")
			continue
		}
		assert.EqualValues(t, 3, lines)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Contains(t, string(text), fmt.Sprintf(`"dropped":{"bytes":%d}`, cut-last))
	}
}

func TestAChangedJournalIsFound(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(lines []string) []string
		says   string
	}{
		{"a word", func(l []string) []string {
			l[1] = strings.Replace(l[1], "committed", "uncertain", 1)
			return l
		}, "does not follow"},
		{"a line dropped", func(l []string) []string { return append(l[:1], l[2:]...) }, "does not follow"},
		{"the last line dropped", func(l []string) []string { return l[:len(l)-1] }, "dropped from its end"},
		{"two lines turned", func(l []string) []string { l[1], l[2] = l[2], l[1]; return l }, "does not follow"},
		{"a line doubled", func(l []string) []string { return append(l, l[len(l)-1]) }, "does not follow"},
		{"what is no line", func(l []string) []string { l[2] = "{}x"; return l }, "line 3"},
		{"a field that is not known", func(l []string) []string {
			l[3] = `{"m":1}`
			return l
		}, "is not a journal's line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), Name)
			head := written(t, path, 4)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			lines := c.change(strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"))
			require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
			_, err = Verify(path, head)
			assert.ErrorContains(t, err, c.says)
		})
	}
}
