package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
)

// onTerminal returns output to a terminal, and what the terminal shows.
func onTerminal() (o *Output, shown *bytes.Buffer) {
	shown = new(bytes.Buffer)
	o = &Output{Width: defaultWidth, TTY: true, ErrTTY: true}
	o.Stdout, o.Stderr = &terminal{w: shown, json: &o.JSON}, &terminal{w: shown, json: new(bool)}
	return o, shown
}

// controls returns the characters that are escaped on a terminal.
func controls() (all []rune) {
	for r := rune(0); r < 0x10000; r++ {
		switch {
		case r == '\n' || r == '\t':
		case r < 0x20, r >= 0x7f && r <= 0x9f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			all = append(all, r)
		}
	}
	return all
}

func TestATerminalShowsControlCharactersAsEscapes(t *testing.T) {
	require.Len(t, controls(), 30+33+5+4)
	for _, r := range controls() {
		text, want := fmt.Sprintf("before%cafter", r), fmt.Sprintf(`before\u{%x}after`, r)
		for name, show := range map[string]func(o *Output){
			"result":  func(o *Output) { o.Print("%s\n", text) },
			"writer":  func(o *Output) { fmt.Fprintln(o.Stdout, text) },
			"note":    func(o *Output) { o.Note("%s", text) },
			"columns": func(o *Output) { o.Columns([]Column{{"name", []string{text}, ""}}) },
			"error":   func(o *Output) { o.Fail(abi.NewError(abi.CodeBackend, text)) },
			"hint":    func(o *Output) { o.Fail(abi.NewError(abi.CodeBackend, "message").WithHint(text)) },
			"backend's answer": func(o *Output) {
				o.Fail(&abi.Error{Code: abi.CodeBackend, Native: &abi.NativeError{Body: text}})
			},
			"log": func(o *Output) { fmt.Fprintln(o.Stderr, text) },
		} {
			o, shown := onTerminal()
			show(o)
			if name == "columns" {
				require.NotContains(t, shown.String(), string(r), name)
				continue
			}
			require.Contains(t, shown.String(), want, "%s of U+%04X", name, r)
		}
	}
}

func TestATerminalShowsOrdinaryTextAsItIs(t *testing.T) {
	for _, text := range []string{"a\tb\nc", "می\u200cخواهم", "👩\u200d👧", "a\u200eb\u200fc", "日本語 é e\u0301 🍵", "C:\\u{1b}", ""} {
		o, shown := onTerminal()
		o.Print("%s", text)
		require.Equal(t, text, shown.String())
	}
}

func TestJSONOnATerminalHasTheSameValue(t *testing.T) {
	for _, r := range append(controls(), '\n', '\t', 0x200d, 'é', '🍵') {
		text := fmt.Sprintf("before%cafter", r)
		for name, show := range map[string]func(o *Output){
			"object": func(o *Output) { require.NoError(t, o.Object(map[string]string{"formatted_context": text})) },
			"value": func(o *Output) {
				require.NoError(t, o.Value(&abi.FormatResult{FormattedContext: text}))
			},
			"a line": func(o *Output) {
				line, err := json.Marshal(map[string]string{"formatted_context": text})
				require.NoError(t, err)
				o.JSON = true
				_, err = o.Stdout.Write(line)
				require.NoError(t, err)
			},
		} {
			o, shown := onTerminal()
			show(o)
			require.Empty(t, strings.IndexFunc(shown.String(), isControl)+1, "%s of U+%04X: %q", name, r, shown)
			var read abi.FormatResult
			require.NoError(t, json.Unmarshal(shown.Bytes(), &read))
			require.Equal(t, text, read.FormattedContext, name)
		}
	}
}

func TestPipesAreExact(t *testing.T) {
	var out bytes.Buffer
	o := NewOutput(System{Stdout: &out, Stderr: &out})
	text := string(append(controls(), 0x200d)) + "\xff\x9b"
	o.Print("%s", text)
	require.Equal(t, text, out.String())
}

func TestATerminalShowsTheSameHoweverTextIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.SampledFrom([]string{"a", "é", "日", "🍵", "\x1b", "\u009b", "\u202e", "\n"})).Draw(t, "text")
		whole := []byte(strings.Join(text, ""))
		o, shown := onTerminal()
		for rest := whole; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "written")
			written, err := o.Stdout.Write(rest[:n])
			require.NoError(t, err)
			require.Equal(t, n, written)
			rest = rest[n:]
		}
		require.Equal(t, Printable(string(whole)), shown.String())
	})
	o, shown := onTerminal()
	o.Print("%s", "a\x9b31m\xc3 b") // invalid UTF-8: some terminals interpret 0x9b
	require.Equal(t, "a\ufffd31m\ufffd b", shown.String())
}
