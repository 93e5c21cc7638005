package cassette

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func written(t require.TestingT, operations ...*Operation) []byte {
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{HostVersion: "test", Clock: "virtual", Seed: "00",
		Load: Load{Provider: "p", Config: abi.Raw(`{}`)}})
	require.NoError(t, err)
	for _, o := range operations {
		require.NoError(t, w.Add(o))
	}
	require.NoError(t, w.End())
	return b.Bytes()
}

// read reads a whole cassette.
func read(text []byte) (list []*Operation, err error) {
	r, err := NewReader("f", bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	for {
		o, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, o)
	}
}

func three() []*Operation {
	n := int64(7)
	return []*Operation{{Name: OpOpen, At: "2026-01-02T03:04:05Z",
		Entries: []Entry{{Op: "health", Request: Text(`{"op":"health"}`), Answer: Text(`{}`)}}},
		{Name: "record_event", Request: Text("<&> \u2028 \"x\""), Answer: Text("a\nb"),
			Entries: []Entry{{Op: "record_event", Failure: Text("f"), Stopped: true, Calls: []Call{
				{Name: "tokens_fit", In: []Text{Text("some"), {}, Text("\xff\x00")}, Args: []int64{-1}, Result: &n},
				{Name: "http_send", Head: Text("{}"), Body: Text("\x80 not UTF-8"), IsError: true,
					IO: []abi.IO{{Route: "r", MS: 1.5}}, BackendUS: 3}}}}},
		{Name: "retrieve", Error: Text(`{}`), Redacted: true,
			Records: []Record{{Table: "ledger", Key: Text("\x01\xfe"), Value: Text("v")}},
			Failed:  []FailedCommit{{Nth: 1, Error: Text("e")}}, ElapsedUS: []int64{1, 2}}}
}

func TestACassetteComesBackAsItWasWritten(t *testing.T) {
	want := three()
	text := written(t, want...)
	got, err := read(text)
	require.NoError(t, err)
	require.Len(t, got, 3)
	for i := range want {
		a, err := json.Marshal(want[i])
		require.NoError(t, err)
		b, err := json.Marshal(got[i])
		require.NoError(t, err)
		require.JSONEq(t, string(a), string(b))
	}
	require.Equal(t, "\x80 not UTF-8", string(got[1].Entries[0].Calls[1].Body))
	require.Equal(t, "<&> \u2028 \"x\"", string(got[1].Request))
	for _, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		require.True(t, json.Valid(line), "every line is JSON for other tools, too")
	}
}

func TestTextKeepsEveryByte(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := Text(rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes"))
		if rapid.Bool().Draw(rt, "text") {
			want = Text(rapid.String().Draw(rt, "string"))
		}
		encoded, err := json.Marshal(want)
		require.NoError(rt, err)
		var got Text
		require.NoError(rt, json.Unmarshal(encoded, &got))
		require.Equal(rt, string(want), string(got))
	})
}

// requireWrong requires a typed error that names the line.
func requireWrong(t require.TestingT, err error, reason string, parts ...string) {
	require.Error(t, err)
	e := abi.AsError(err)
	require.Equal(t, abi.CodeInvalidArgument, e.Code)
	require.Equal(t, reason, e.Reason, "%v", e)
	for _, p := range parts {
		require.Contains(t, e.Message, p)
	}
}

func TestACassetteThatIsCutOffSaysWhere(t *testing.T) {
	text := written(t, three()...)
	lines := bytes.SplitAfter(text, []byte("\n"))
	t.Run("between two lines", func(t *testing.T) {
		list, err := read(bytes.Join(lines[:3], nil))
		requireWrong(t, err, ReasonCut, "f:3", "after 2 operations")
		require.Contains(t, abi.AsError(err).Hint, "a slot that still records closes it when it stops")
		require.Len(t, list, 2, "what was there could be read")
	})
	t.Run("in the middle of a line", func(t *testing.T) {
		_, err := read(text[:len(lines[0])+len(lines[1])+20])
		requireWrong(t, err, ReasonCut, "f:3", "in its middle", "after 1 operations")
	})
	t.Run("every other place", func(t *testing.T) {
		for n := range len(text) {
			_, err := read(text[:n])
			require.Error(t, err, "cut at byte %d", n)
			if n > 0 {
				requireWrong(t, err, ReasonCut)
			}
		}
	})
	t.Run("an empty file", func(t *testing.T) {
		_, err := read(nil)
		requireWrong(t, err, ReasonForm, "is empty")
	})
}

func TestACassetteThatWasEditedSaysWhere(t *testing.T) {
	text := written(t, three()...)
	lines := bytes.SplitAfter(text, []byte("\n"))
	join := func(list ...int) []byte {
		var b []byte
		for _, i := range list {
			b = append(b, lines[i]...)
		}
		return b
	}
	for name, c := range map[string]struct {
		text []byte
		at   string
	}{
		"a changed text":         {bytes.Replace(text, []byte("record_event"), []byte("record_evenT"), 1), "f:3"},
		"a line left out":        {join(0, 1, 3, 4), "f:3"},
		"two lines exchanged":    {join(0, 2, 1, 3, 4), "f:2"},
		"a line twice":           {join(0, 1, 1, 2, 3, 4), "f:3"},
		"something behind":       {append(bytes.Clone(text), "{}\n"...), "f:6"},
		"a line without its sum": {append(join(0), "{\"end\":{\"operations\":0}}\n"...), "f:2"},
		"the end of another":     {append(join(0, 1), written(t)[len(lines[0]):]...), "f:3"},
		"a changed checksum": {bytes.Replace(text, lines[1][len(lines[1])-10:len(lines[1])-4], []byte("000000"),
			1), "f:2"},
		"the header of another": {append(bytes.Replace(join(0), []byte("virtual"), []byte("virtuaL"), 1),
			join(1, 2, 3, 4)...), "f:1"},
		"line ends of another OS": {bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")), "f:1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(c.text)
			require.Error(t, err)
			require.Contains(t, []string{ReasonEdited, ReasonForm}, abi.AsError(err).Reason)
			require.Contains(t, abi.AsError(err).Message, c.at)
		})
	}
	t.Run("any byte", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			i := rapid.IntRange(0, len(text)-1).Draw(rt, "at")
			other := rapid.Byte().Filter(func(b byte) bool { return b != text[i] }).Draw(rt, "byte")
			changed := bytes.Clone(text)
			changed[i] = other
			_, err := read(changed)
			require.Error(rt, err)
			require.Equal(rt, abi.CodeInvalidArgument, abi.CodeOf(err))
		})
	})
}

func TestACassetteOfAnotherFormSaysSo(t *testing.T) {
	t.Run("another version", func(t *testing.T) {
		var b bytes.Buffer
		w := &Writer{to: &b}
		require.NoError(t, w.write(line{Header: &Header{Cassette: 2}}))
		_, err := read(b.Bytes())
		requireWrong(t, err, ReasonVersion, "f:1", "version 2", "version 1")
	})
	t.Run("another file", func(t *testing.T) {
		for _, text := range []string{"{}\n", "memory:\n", `{"manifest":1}` + "\n", strings.Repeat("x", 1<<20) + "\n",
			"\n"} {
			_, err := read([]byte(text))
			requireWrong(t, err, ReasonForm, "f:1")
		}
	})
	t.Run("a field that this version does not know", func(t *testing.T) {
		var b bytes.Buffer
		_, err := NewWriter(&b, Header{})
		require.NoError(t, err)
		c := chain{}
		body := []byte(`{"header":{"cassette":1,"host_version":"","created":"","clock":"","seed":"","load":{},"more":1}`)
		text := fmt.Sprintf("%s%s%s\"}\n", body, sumMark, c.next(body))
		_, err = read([]byte(text))
		requireWrong(t, err, ReasonForm, "more")
	})
}

func FuzzReader(f *testing.F) {
	text := written(f, three()...)
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add([]byte(`{"header":{"cassette":1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := read(text); err != nil {
			require.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), "whatever is wrong with a file, it is the file")
		}
	})
}
