package moving

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/convert"
)

// TestALongLineOfAnExportIsNotHeld: a line has the same limit as in memhost record, and a longer one is reported and
// not read into memory.
func TestALongLineOfAnExportIsNotHeld(t *testing.T) {
	event := abi.MemoryEvent{EventID: "e1", RunID: "r", UserID: "p", SessionID: "s", TurnID: "t",
		Timestamp: "2026-01-02T03:04:05Z", Messages: []abi.Message{{Role: abi.RoleUser, Content: new("tea")}}}
	path := filepath.Join(t.TempDir(), "export.jsonl")
	f, err := os.Create(path)
	require.NoError(t, err)
	_, err = fmt.Fprintf(f, "\xEF\xBB\xBF%s\r\n\n", abi.Marshal(&event))
	require.NoError(t, err)
	for range 10 * convert.DefaultMaxLine >> 20 {
		_, err = f.WriteString(strings.Repeat(" ", 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var ids []string
	err = readExport(path, nil, func(e *abi.MemoryEvent) error { ids = append(ids, e.EventID); return nil })
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "line 3: the file was cut off or edited: longer than 16777216 bytes")
	assert.Equal(t, []string{"e1"}, ids)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*convert.DefaultMaxLine))
}
