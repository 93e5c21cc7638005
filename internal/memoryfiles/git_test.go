package memoryfiles

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAGitExportIsTheSameByteForByte: exporting again creates the same repository, also with a later release.
func TestAGitExportIsTheSameByteForByte(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"82443c6c940924ab7919bece2dc4defcbcf73060a20195342044a5ac0feca213": FanOut(ledgerOf(t, merged...)),
		"4764c34f68e283dfa52f9955d2a831ebc08ceb77a1680a072e4e968b923f4728": {"versions/log.jsonl": `{"author":"<a>\n","message":"One\n\nrecord","time":"2026-01-01T00:00:00Z","summary":"said","tree":{"a.md":"1","b/c.md":"2","b.md":"2"}}` + "\n" +
			`{"author":"b","message":"Two","time":"2026-01-01T00:00:01Z","tree":{"a.md":"2"}}` + "\n",
			"versions/blobs/1": "one\n", "versions/blobs/2": ""},
	} {
		dir := t.TempDir()
		require.NoError(t, WriteGit(dir, files))
		sum := sha256.New()
		require.NoError(t, fs.WalkDir(os.DirFS(dir), ".git", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			fmt.Fprintln(sum, path)
			if strings.HasPrefix(path, ".git/objects/") { // its name is the hash of its content before compression
				return nil
			}
			text, err := fs.ReadFile(os.DirFS(dir), path)
			fmt.Fprintf(sum, "%v\n", text)
			return err
		}))
		assert.Equal(t, want, fmt.Sprintf("%x", sum.Sum(nil)))
	}
}
