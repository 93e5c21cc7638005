package convert

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
)

// lookAhead is how many bytes of a stream are read to detect its format.
const lookAhead = 64 << 10

// source returns the JSON values of a stream one by one, as if each were on a line.
type source interface {
	// next returns a value, which may be empty, and is valid until the next call. Errors: errLineTooLong; io.EOF; a
	// *LineError after which nothing can be read; those of the stream.
	next() ([]byte, error)
	// line is the line on which the last value starts, from 1.
	line() int
}

// newSource detects the format of a stream from its start: JSON Lines, or one JSON value that spans several lines. The
// value is a list of what could be on lines, or one such element.
//
// Errors: *LineError for a stream in an unsupported format.
func newSource(in io.Reader, o Options) (source, error) {
	buffered := bufio.NewReaderSize(in, lookAhead)
	start, whole := beginning(buffered)
	start = bytes.TrimPrefix(start, []byte("\xEF\xBB\xBF"))
	start = bytes.TrimLeft(start, " \t\r\n")
	if o.Format == FormatAuto && len(start) > 0 {
		if err := foreign(start); err != nil {
			return nil, &LineError{1, abi.AsError(err)}
		}
	}
	if overManyLines(start, whole) {
		return newValues(buffered, o.MaxLine), nil
	}
	return &LineReader{in: buffered, max: o.MaxLine}, nil
}

// beginning returns the bytes that a stream has immediately available. It does not wait for a pipe whose writer pauses.
func beginning(in *bufio.Reader) (start []byte, whole bool) {
	if _, err := in.Peek(1); err != nil {
		return nil, true
	}
	start, _ = in.Peek(in.Buffered())
	return start, false
}

// overManyLines distinguishes a value that continues after its first line from one that is a line.
func overManyLines(start []byte, whole bool) bool {
	if len(start) == 0 || start[0] != '[' && start[0] != '{' {
		return false
	}
	first, _, more := bytes.Cut(start, []byte("\n"))
	if !more {
		return !whole && start[0] == '[' && isListOfLines(start)
	}
	first = bytes.TrimRight(first, " \t\r")
	return strings.ContainsRune("[{,", rune(first[len(first)-1])) && !json.Valid(first) && readsOn(start)
}

// readsOn reports whether start is the start of a single value. This excludes lines of which the first is broken.
func readsOn(start []byte) bool {
	d := json.NewDecoder(bytes.NewReader(start))
	for {
		_, err := d.Token()
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return syntax.Offset >= int64(len(start)) // it is only truncated there
		}
		if err != nil {
			return true
		}
	}
}

// isListOfLines reports whether a value is a list whose first element could be on a line: an event, a conversation, or
// a list of messages.
func isListOfLines(start []byte) bool {
	d := json.NewDecoder(bytes.NewReader(start))
	if _, err := d.Token(); err != nil {
		return false
	}
	var first json.RawMessage
	if d.Decode(&first) != nil {
		return false
	}
	var keys map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(first, &list) == nil {
		return len(list) > 0 && isMessage(list[0])
	}
	return json.Unmarshal(first, &keys) == nil && (keys["event_id"] != nil || keys["messages"] != nil)
}

// foreign rejects, in one sentence, a stream of which no line can be read.
func foreign(start []byte) error {
	first, _, _ := bytes.Cut(start, []byte("\n"))
	var what string
	switch {
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		what = "is a zip archive without conversations that are recognised"
	case bytes.HasPrefix(start, []byte("\x1f\x8b")):
		what = "is compressed by gzip (`gunzip -k FILE` writes the file that is in it)"
	case bytes.HasPrefix(start, []byte("\x28\xb5\x2f\xfd")):
		what = "is compressed by zstd (`zstd -d FILE` writes the file that is in it)"
	case bytes.HasPrefix(start, []byte("\xFF\xFE")), bytes.HasPrefix(start, []byte("\xFE\xFF")):
		what = "is UTF-16 (`iconv -f UTF-16 -t UTF-8` makes UTF-8 of it)"
	case bytes.IndexByte(first, 0) >= 0:
		what = "is a binary file"
	case start[0] == '<':
		what = "is XML or HTML"
	default:
		for line := range bytes.Lines(start) {
			if beginsJSON(bytes.TrimSpace(line)) {
				return foreignObject(start)
			}
		}
		if what = "is text"; bytes.Count(first, []byte(",")) > 1 || bytes.Count(first, []byte("\t")) > 1 {
			what = "looks like a table (CSV)"
		}
	}
	return abi.NewError(abi.CodeInvalidArgument, what+", not JSON: no line of it can be recorded").WithHint(wantedShape)
}

// beginsJSON reports whether a line may be JSON, or the first line of multi-line JSON. The `[` of `[link](page.md)` is
// not the start of a list.
func beginsJSON(line []byte) bool {
	if len(line) == 0 || line[0] != '{' && line[0] != '[' {
		return false
	}
	rest := bytes.TrimSpace(line[1:])
	return len(rest) == 0 || bytes.IndexByte([]byte("{}[]\""), rest[0]) >= 0 || json.Valid(line)
}

const wantedShape = `want JSON Lines (or a JSON list) of events, {"event_id": ..., "messages": [...]}, or of ` +
	`conversations, {"messages": [{"role": ..., "content": ...}]}`

// foreignObject rejects a stream whose first object has none of the keys of an event, a conversation or a message. An
// object with a single key may be a line with a mistake, so such a stream is only rejected if the key occurs again.
func foreignObject(start []byte) error {
	d := json.NewDecoder(bytes.NewReader(firstItem(start)))
	for depth := 0; depth < 3; depth++ {
		token, err := d.Token()
		if err != nil || token != json.Delim('[') && token != json.Delim('{') {
			return nil // its reader reports the error
		}
		if token == json.Delim('{') {
			break
		}
	}
	var keys []string
	for d.More() {
		key, err := d.Token()
		if err != nil {
			break
		}
		name, ok := key.(string)
		if !ok {
			break
		}
		keys = append(keys, name)
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			break
		}
	}
	own := []string{"event_id", "turn_id", "run_id", "user_id", "persona_id", "session_id", "messages", "role",
		"content", "tool_calls", "start"}
	once := len(keys) == 1 && bytes.Count(start, []byte(strconv.Quote(keys[0]))) == 1
	if !once && holdsFacts(keys) {
		return abi.NewError(abi.CodeInvalidArgument, "has facts that a memory drew from conversations, not what was "+
			"said: nothing of it can be recorded").WithHint("record the conversations: memory draws its facts anew")
	}
	if len(keys) == 0 || once || slices.ContainsFunc(keys, func(key string) bool {
		return slices.Contains(own, key) || abi.Nearest(key, own) != ""
	}) {
		return nil
	}
	what := "the keys "
	if len(keys) == 1 {
		what = "the key "
	}
	const most = 6
	if len(keys) > most {
		keys = append(keys[:most], "...")
	}
	return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("is JSON of another kind, with %s: nothing of "+
		"it can be recorded as it is", what+strings.Join(keys, ", "))).
		WithHint(wantedShape)
}

// firstItem skips to the first item if an export is an object with a list.
func firstItem(start []byte) []byte {
	before, list, found := bytes.Cut(start, []byte("["))
	if name := string(bytes.Trim(before, "{\": \t\r\n")); found && (name == "results" || name == "memories") {
		return list
	}
	return start
}

// holdsFacts recognises, by its keys, what a memory has derived from conversations: an item of mem0 or MemOS, an edge
// of Graphiti, a conclusion of Honcho.
func holdsFacts(keys []string) bool {
	facts := false
	for _, key := range keys {
		switch key {
		case "event_id", "turn_id", "messages", "role":
			return false
		case "memory", "fact", "observed_id":
			facts = true
		}
	}
	return facts
}

// values reads one JSON value that spans several lines. The elements of a list are returned one by one, unless they are
// the messages of one conversation.
type values struct {
	in     *lineCounter
	decode *json.Decoder
	max    int
	opened bool // the list's bracket has been read
	ended  bool
	at     int
	value  json.RawMessage
}

func newValues(in *bufio.Reader, max int) *values {
	counter := &lineCounter{in: in}
	return &values{in: counter, decode: json.NewDecoder(counter), max: max}
}

func (v *values) line() int { return v.at }

func (v *values) next() ([]byte, error) {
	if v.ended {
		return nil, io.EOF
	}
	if !v.opened {
		v.opened = true
		if first, err := v.in.first(); err != nil || first != '[' {
			v.ended = true
			return v.read()
		}
		if _, err := v.decode.Token(); err != nil {
			return nil, v.broken(err)
		}
	}
	if !v.decode.More() {
		v.ended = true
		if _, err := v.decode.Token(); err != nil {
			return nil, v.broken(err)
		}
		return nil, io.EOF
	}
	value, err := v.read()
	if err != nil || !isMessage(value) {
		return value, err
	}
	return v.messages(value)
}

// messages collects a list whose first element is a message: it is a single conversation.
func (v *values) messages(first []byte) ([]byte, error) {
	list, at := append([]byte("["), first...), v.at
	for v.decode.More() {
		value, err := v.read()
		if err != nil {
			return nil, err
		}
		if list = append(append(list, ','), value...); len(list) > v.max {
			return nil, errLineTooLong
		}
	}
	v.at, v.ended = at, true
	return append(list, ']'), nil
}

func (v *values) read() ([]byte, error) {
	if err := v.decode.Decode(&v.value); err != nil {
		return nil, v.broken(err)
	}
	v.at = v.in.lineAt(v.decode.InputOffset() - int64(len(v.value)))
	if len(v.value) > v.max {
		return nil, errLineTooLong
	}
	var compact bytes.Buffer // as it would be on a line
	if err := json.Compact(&compact, v.value); err != nil {
		return nil, v.broken(err)
	}
	return compact.Bytes(), nil
}

// broken reports where a value is broken. Nothing can be read after it.
func (v *values) broken(err error) error {
	v.ended = true
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) {
		v.at = v.in.lineAt(v.in.read)
		if syntax != nil {
			v.at = v.in.lineAt(syntax.Offset)
		}
		return &LineError{v.at, invalid("", "the JSON over many lines breaks off here: %s",
			err).WithHint("was the file cut off, or edited there? " + wantedShape)}
	}
	return err
}

// lineCounter remembers where the lines of a stream start.
type lineCounter struct {
	in   *bufio.Reader
	read int64
	ends []int64 // offsets after line ends
}

// first returns the first byte that is not a blank. It consumes only what Read will return again.
func (c *lineCounter) first() (byte, error) {
	mark := []byte("\xEF\xBB\xBF")
	start, _ := beginning(c.in)
	if bytes.HasPrefix(start, mark) { // it is not JSON
		_, _ = c.in.Discard(len(mark))
		start, _ = beginning(c.in)
	}
	start = bytes.TrimLeft(start, " \t\r\n")
	if len(start) == 0 {
		return 0, io.EOF
	}
	return start[0], nil
}

// Read implements io.Reader.
func (c *lineCounter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	for i, b := range p[:n] {
		if b == '\n' {
			c.ends = append(c.ends, c.read+int64(i)+1)
		}
	}
	c.read += int64(n)
	return n, err
}

// lineAt is the line number of an offset, from 1.
func (c *lineCounter) lineAt(offset int64) int {
	n, _ := slices.BinarySearchFunc(c.ends, offset, func(end, offset int64) int {
		if end <= offset {
			return -1
		}
		return 1
	})
	return n + 1
}

// isMessage reports whether a value is a message of a conversation, which has a role.
func isMessage(value []byte) bool {
	var keys map[string]json.RawMessage
	if json.Unmarshal(value, &keys) != nil {
		return false
	}
	_, role := keys["role"]
	_, event := keys["event_id"]
	_, messages := keys["messages"]
	return role && !event && !messages
}

// gather collects messages that are on one line each into one conversation.
//
// Errors: *LineError for an invalid line, and for messages that name different sessions.
func (r *Reader) gather(first []byte) ([]byte, int, error) {
	line := r.lines.line()
	list := append([]byte("["), first...)
	for at, message := line, first; ; {
		var keys map[string]json.RawMessage
		_ = json.Unmarshal(message, &keys)
		for _, key := range []string{"session_id", "conversation_id", "thread_id", "chat_id"} {
			if _, ok := keys[key]; !ok {
				continue
			}
			e := invalid(key, "a message on a line of its own says which conversation it belongs to, so these are "+
				"several")
			return nil, line, &LineError{at, e.WithHint(fmt.Sprintf(`write each conversation on a line of its own, `+
				`without %s in its messages: {"session_id": ..., "messages": [...]}`, key))}
		}
		value, err := r.lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return append(list, ']'), line, nil
		case err != nil:
			return nil, line, err
		case len(value) == 0:
			continue
		}
		if !isMessage(value) {
			e := invalid("", "is no message, and the lines before are messages of one conversation")
			return nil, line, &LineError{r.lines.line(),
				e.WithHint("messages on a line each are one conversation; several are a list of messages each, on a line of its own")}
		}
		message = bytes.Clone(value)
		at = r.lines.line()
		if list = append(append(list, ','), message...); len(list) > r.options.MaxLine {
			return nil, line, errLineTooLong
		}
	}
}
