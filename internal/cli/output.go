package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/plainjson"
)

// output writes a command's results to standard output and its messages to standard error.
type output struct {
	stdout, stderr io.Writer
	json           bool
	// tty and errTTY: standard output and standard error are terminals.
	tty, errTTY bool
	// unicode allows marks beyond ASCII.
	unicode bool
	// width is that of standard output, in columns.
	width int
}

func newOutput(s System) *output {
	o := &output{stdout: s.Stdout, stderr: s.Stderr, width: defaultWidth}
	o.tty, o.errTTY = isTerminal(s.Stdout), isTerminal(s.Stderr)
	env := map[string]string{}
	for _, pair := range s.Environ {
		if k, v, ok := strings.Cut(pair, "="); ok {
			env[k] = v
		}
	}
	o.unicode = unicodeLocale(env) && env["TERM"] != "dumb"
	if f, ok := s.Stdout.(*os.File); ok && o.tty {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			o.width = w
		}
	}
	var columns int
	if _, err := fmt.Sscan(env["COLUMNS"], &columns); err == nil && columns > 0 && columns < 1000 {
		o.width = columns
	}
	return o
}

// defaultWidth is for output that is not a terminal: three columns fit.
const defaultWidth = 112

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// unicodeLocale reports whether the locale's characters are UTF-8. Without any locale the answer is no.
func unicodeLocale(env map[string]string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env[name]); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// mark is a sign where the terminal can show it, and plain letters where it cannot.
func (o *output) mark(sign, plain string) string {
	if o.unicode {
		return sign
	}
	return plain
}

func (o *output) passed() string { return o.mark("✓", "ok") }
func (o *output) open() string   { return o.mark("–", "-") }
func (o *output) broken() string { return o.mark("✗", "failed") }

// print writes a result.
func (o *output) print(format string, args ...any) { fmt.Fprintf(o.stdout, format, args...) }

// note writes a line about what happens, to standard error.
func (o *output) note(format string, args ...any) {
	fmt.Fprintln(o.stderr, printable(strings.TrimRight(fmt.Sprintf(format, args...), "\n")))
}

// value prints a type of the contract as JSON.
func (o *output) value(v abi.Encodable) error { return o.raw(abi.Marshal(v)) }

// object prints any other value as JSON.
func (o *output) object(v any) error {
	text, err := plainjson.Marshal(v)
	if err != nil {
		return err
	}
	return o.raw(text)
}

func (o *output) raw(text []byte) error {
	text, err := indented(text)
	if err != nil {
		return err
	}
	_, err = o.stdout.Write(text)
	return err
}

// indented is JSON for people to read.
func indented(text []byte) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(text), "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// fail prints an error: a line for the message and one for the hint, or with --json an object on standard output.
func (o *output) fail(e *abi.Error) {
	if o.json {
		_ = o.object(map[string]abi.Raw{"error": abi.Marshal(e)})
		return
	}
	lines := strings.Split(printable(e.Message), "\n")
	o.note("memhost: %s", strings.Join(lines, "\nmemhost: "))
	if e.Native != nil && e.Native.Body != "" && !strings.Contains(e.Message, e.Native.Body) {
		status := ""
		if e.Native.Status != nil {
			status = fmt.Sprintf(" %d", *e.Native.Status)
		}
		o.note("  backend said%s: %s", status, cut(strings.TrimSpace(printable(e.Native.Body)), 400))
	}
	if e.Hint != "" {
		o.note("  hint: %s", printable(e.Hint))
	}
}

// printable makes text of strangers harmless for a terminal: control characters, which could move the cursor or change
// what was printed, become �.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// inALine makes a stranger's text fit for a cell of a table.
func inALine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, printable(s))
}

// cut shortens s to n characters.
func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "..."
		}
		n--
	}
	return s
}

// size writes a number of bytes as people read it.
func size(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KB", (n+512)>>10)
	}
	return fmt.Sprintf("%d MB", (n+1<<19)>>20)
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
