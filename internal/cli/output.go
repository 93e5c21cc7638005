package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/plainjson"
)

// Output writes a command's results to standard output and its messages to standard error. Where these are terminals,
// control characters are escaped; pipes and files get the bytes as they are.
type Output struct {
	Stdout, Stderr io.Writer
	JSON           bool
	// TTY and ErrTTY: standard output and standard error are terminals.
	TTY, ErrTTY bool
	// Unicode allows symbols beyond ASCII.
	Unicode bool
	// Width is the width of standard output, in columns.
	Width int
	// screen is standard error as it is, for progress, which moves the cursor.
	screen io.Writer
	// Now is the clock for progress lines.
	Now func() time.Time
}

// NewOutput inspects the streams and the environment: whether output is a terminal, how wide it is, and whether it can
// show Unicode.
func NewOutput(s System) *Output {
	o := &Output{Stdout: s.Stdout, Stderr: s.Stderr, Width: defaultWidth, screen: s.Stderr, Now: time.Now}
	if o.TTY = IsTerminal(s.Stdout); o.TTY {
		o.Stdout = &terminal{w: s.Stdout, json: &o.JSON}
	}
	if o.ErrTTY = IsTerminal(s.Stderr); o.ErrTTY {
		o.Stderr = &terminal{w: s.Stderr, json: new(bool)}
	}
	env := map[string]string{}
	for _, pair := range s.Environ {
		if k, v, ok := strings.Cut(pair, "="); ok {
			env[k] = v
		}
	}
	o.Unicode = unicodeLocale(env) && env["TERM"] != "dumb"
	if f, ok := s.Stdout.(*os.File); ok && o.TTY {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			o.Width = w
		}
	}
	var columns int
	if _, err := fmt.Sscan(env["COLUMNS"], &columns); err == nil && columns > 0 && columns < 1000 {
		o.Width = columns
	}
	return o
}

// defaultWidth is for output that is not a terminal. Three columns fit.
const defaultWidth = 112

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// unicodeLocale reports whether the locale's encoding is UTF-8. Without a locale it is not.
func unicodeLocale(env map[string]string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env[name]); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

// Mark returns sign if the terminal can show it, and plain otherwise.
func (o *Output) Mark(sign, plain string) string {
	if o.Unicode {
		return sign
	}
	return plain
}

// Passed is the mark for success.
func (o *Output) Passed() string { return o.Mark("✓", "ok") }

// Open is the mark for a pending result.
func (o *Output) Open() string { return o.Mark("–", "-") }

// Broken is the mark for failure.
func (o *Output) Broken() string { return o.Mark("✗", "failed") }

// Print writes a result.
func (o *Output) Print(format string, args ...any) { fmt.Fprintf(o.Stdout, format, args...) }

// Note writes a line about progress or a warning to standard error.
func (o *Output) Note(format string, args ...any) {
	fmt.Fprintln(o.Stderr, Printable(strings.TrimRight(fmt.Sprintf(format, args...), "\n")))
}

// Value prints a type of the contract as JSON.
func (o *Output) Value(v abi.Encodable) error { return o.Raw(abi.Marshal(v)) }

// Object prints any other value as JSON.
func (o *Output) Object(v any) error {
	text, err := plainjson.Marshal(v)
	if err != nil {
		return err
	}
	return o.Raw(text)
}

// Raw prints JSON, indented.
func (o *Output) Raw(text []byte) error {
	text, err := Indented(text)
	if err != nil {
		return err
	}
	_, err = io.WriteString(o.Stdout, escapedJSON(string(text)))
	return err
}

// Indented is JSON for people to read.
func Indented(text []byte) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(text), "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// Fail prints an error: a line for the message and one for the hint, or with --json an object on standard output.
func (o *Output) Fail(e *abi.Error) {
	if o.JSON {
		_ = o.Object(map[string]abi.Raw{"error": abi.Marshal(e)})
		return
	}
	lines := strings.Split(Printable(e.Message), "\n")
	o.Note("memhost: %s", strings.Join(lines, "\nmemhost: "))
	if e.Native != nil && e.Native.Body != "" && !strings.Contains(e.Message, e.Native.Body) {
		status := ""
		if e.Native.Status != nil {
			status = fmt.Sprintf(" %d", *e.Native.Status)
		}
		o.Note("  backend said%s: %s", status, Cut(strings.TrimSpace(Printable(e.Native.Body)), 400))
	}
	if e.Hint != "" {
		o.Note("  hint: %s", Printable(e.Hint))
	}
}

// InALine makes a text from outside fit for a cell of a table.
func InALine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, Printable(s))
}

// Cut shortens s to n characters.
func Cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "..."
		}
		n--
	}
	return s
}

// Size writes a number of bytes as people read it.
func Size(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KB", (n+512)>>10)
	}
	return fmt.Sprintf("%d MB", (n+1<<19)>>20)
}

// Count writes a number with its noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Grouped writes a number with commas.
func Grouped(n int64) string {
	text := fmt.Sprint(n)
	var b strings.Builder
	for i, digit := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}
