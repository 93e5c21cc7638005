// Package recorded reads what tests have in their testdata of real servers and agents: exchanges, calls, frames, one
// JSON object a line.
package recorded

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Read reads the values of a file; there must be one.
func Read[T any](t testing.TB, path string) (list []T) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var v T
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, "%s, value %d", path, len(list)+1)
		list = append(list, v)
	}
	require.NotEmpty(t, list, path)
	return list
}
