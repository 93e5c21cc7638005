package picoclaw

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzInject: whatever a request looks like, only the last user message differs, and only at its end.
func FuzzInject(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":"q"}]}`), "more")
	f.Add([]byte(`{"messages":[{"role":"user","content":"q"}],"messages":[{"role":"user","content":"\ud83d\ude00","content":"last"},{"role":"tool"}]} `), "a\"b\n")
	f.Add([]byte(` {"a":{"messages":[]},"messages" : [ {"content":"q\\","role":"user"} , null ]}`), "")
	f.Fuzz(func(t *testing.T, params []byte, more string) {
		m, err := lastUserMessage(params)
		if err != nil || m == nil || !utf8.ValidString(more) { // what a slot gives is valid
			return
		}
		got := m.with(more)
		require.Equal(t, string(params[:m.end-1]), string(got[:m.end-1]))
		require.True(t, strings.HasSuffix(string(got), string(params[m.end:])))
		if !json.Valid(params) {
			return // cut off after the messages, which PicoClaw never does
		}
		require.True(t, json.Valid(got), "%s", got)
		again, err := lastUserMessage(got)
		require.NoError(t, err)
		require.Equal(t, m.text+"\n\n"+more, again.text)
	})
}

func TestReadLine(t *testing.T) {
	r := bufio.NewReaderSize(strings.NewReader("\ufeffone\r\n"+strings.Repeat("x", 200)+"\n\nlast"), 16)
	var got []string
	for {
		line, err := readLine(r, 100)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			require.ErrorIs(t, err, errLongLine)
			line = []byte("(too long)")
		}
		got = append(got, string(line))
	}
	require.Equal(t, []string{"one", "(too long)", "", "last"}, got)
}
