package picoclaw

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/memhost/memhost/internal/text/plainjson"
)

// The methods that PicoClaw calls. The last one is a notification.
const (
	methodHello        = "hook.hello"
	methodBeforeLLM    = "hook.before_llm"
	methodAfterLLM     = "hook.after_llm"
	methodBeforeTool   = "hook.before_tool"
	methodAfterTool    = "hook.after_tool"
	methodRuntimeEvent = "hook.runtime_event"
)

// request is a line from PicoClaw. A notification has no id.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// rpcError is the error of an answer.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Codes of JSON-RPC 2.0, section 5.1.
const (
	rpcNoSuchMethod = -32601
)

// maxAnswer bounds an answer, in bytes: PicoClaw reads lines through a buffer of 1 MiB, and stops reading after a
// longer line.
const maxAnswer = 1<<20 - 1024

// maxRequest bounds a line from PicoClaw, in bytes. It is far larger than any model's input.
const maxRequest = 64 << 20

// Results that only say "continue". A bare continue leaves request and response unchanged. With a body it would be
// applied like modify, and an echoed response loses the names of its tool calls.
const (
	resultHello    = `{"ok":true,"name":"memhost"}`
	resultContinue = `{"action":"continue"}`
)

// resultModify returns the result that replaces the request.
func resultModify(request []byte) []byte {
	return slicesOf([]byte(`{"action":"modify","request":`), request, []byte(`}`))
}

// answerLine is a line with the result of a call, or with its error. The id is returned unchanged, because PicoClaw
// does not recognise an id converted to text.
func answerLine(id json.RawMessage, result []byte, failed *rpcError) []byte {
	name := []byte(`,"result":`)
	if failed != nil {
		name, result = []byte(`,"error":`), mustMarshal(failed)
	}
	return slicesOf([]byte(`{"jsonrpc":"2.0","id":`), id, name, result, []byte("}\n"))
}

func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// mustMarshal is for values that can always be encoded. It does not escape HTML.
func mustMarshal(v any) []byte {
	text, err := plainjson.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// errLongLine reports a line longer than maxRequest. The line has been read to its end.
var errLongLine = errors.New("the line is too long")

// readLine reads a line without its line end. A last line without one is also returned.
//
// Errors: io.EOF, errLongLine, or the reader's.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > limit; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLongLine
		case err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)):
			return nil, err
		}
		return bytes.TrimRight(bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF")), "\r\n"), nil
	}
}
