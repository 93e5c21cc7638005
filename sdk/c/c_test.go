package c_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// program is testdata/native.c: memhost.h compiled as a native program.
type program struct {
	t   *testing.T
	in  io.Writer
	out io.Reader
}

// native builds and starts the program, with sanitizers if the compiler has them. Without a C compiler the test is
// skipped.
func native(t *testing.T) *program {
	t.Helper()
	compiler := ""
	for _, name := range []string{os.Getenv("CC"), "gcc", "clang", "cc"} {
		if found, err := exec.LookPath(name); name != "" && err == nil {
			compiler = found
			break
		}
	}
	if compiler == "" {
		t.Skip("there is no C compiler on the PATH: memhost.h is not tested natively")
	}
	file := filepath.Join(t.TempDir(), "native")
	args := []string{"-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Wno-unused-function",
		"-o", file, filepath.Join("testdata", "native.c")}
	sanitizers := []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"}
	if output, err := exec.Command(compiler, append(sanitizers, args...)...).CombinedOutput(); err != nil {
		t.Logf("without sanitizers, which this compiler lacks: %s", output)
		output, err = exec.Command(compiler, args...).CombinedOutput()
		require.NoError(t, err, "%s", output)
	} else {
		require.Empty(t, string(output), "the compiler warns of nothing")
	}
	cmd := exec.Command(file)
	var trouble bytes.Buffer
	cmd.Stderr = &trouble
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		require.NoError(t, cmd.Wait(), "%s", &trouble)
	})
	return &program{t, in, out}
}

// ask sends a text to one of the program's functions.
func (p *program) ask(what byte, text string) string {
	request := binary.LittleEndian.AppendUint32([]byte{what}, uint32(len(text)))
	_, err := p.in.Write(append(request, text...))
	require.NoError(p.t, err, "%c %q", what, text)
	var n [4]byte
	_, err = io.ReadFull(p.out, n[:])
	require.NoError(p.t, err, "%c %q", what, text)
	answer := make([]byte, binary.LittleEndian.Uint32(n[:]))
	_, err = io.ReadFull(p.out, answer)
	require.NoError(p.t, err, "%c %q", what, text)
	return string(answer)
}

// TestTheHeaderNatively runs memhost.h natively and compares it with Go.
func TestTheHeaderNatively(t *testing.T) {
	p := native(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *program)
	}{
		{"the reader reads as Go does", theReaderReadsAsGoDoes},
		{"the writer quotes every text", theWriterQuotesEveryText},
		{"integers have 64 bits", integersHave64Bits},
		{"digests are SHA-256", digestsAreSHA256},
		{"scope ids are the sdk's", scopeIDsAreTheSDKs},
		{"times are Go's", timesAreGos},
		{"no text opens or closes the element", noTextOpensOrClosesTheElement},
		{"contexts fit and say what they show", contextsFitAndSayWhatTheyShow},
		{"what a backend says becomes an answer or an error", whatABackendSaysBecomesAnAnswerOrAnError},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, p) }) {
			return // the program may have ended
		}
	}
}

// documents are valid and almost valid JSON.
func documents() []string {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	return []string{`{}`, `[]`, ` { "a" : [ 1 , -0 , 1.5e+3 ] } `, `{"a":{"b":null,"b":true}}`, `"\u00e9\ud83d\ude00\n\/\b"`, `"\ud83d"`,
		`"\ud83dx"`, `"\udc00\ud83d"`, `"\ud83d\u0041"`, `"\ud83d\ud83d\ude00"`, `"\u0000"`, `9223372036854775807`, `-9223372036854775808`,
		`"é漢😀\u200f"`, deep(64), deep(65), `[1,]`, `[,1]`, `{"a"}`, `{"a":}`, `{a:1}`, `01`, `1.`, `.5`, `+1`, `1e`, `--1`, `-`, `nul`, `nulls`,
		`"`, `"\"`, `"\u12"`, `"\x"`, "\"\x01\"", "\"\x7f\"", "\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xc0\x80\"",
		``, ` `, `{} {}`, `1 2`, `[1 2]`, `{"a":1 "b":2}`, "\ufeff{}", `{"":[""]}`, `[true,false,null]`, `truefalse`, "[1\x00]", "\"\x00\""}
}

// mutated changes some bytes of a document.
func mutated(r *rand.Rand, doc string) string {
	const pieces = `{}[]":,\u0123456789abcdefDd8+-.eE tn"` + "\xc3\xa9\xff\xed\x00\n"
	b := []byte(doc)
	for range 1 + r.IntN(3) {
		at := r.IntN(len(b) + 1)
		switch r.IntN(3) {
		case 0:
			b = append(b[:at:at], append([]byte{pieces[r.IntN(len(pieces))]}, b[at:]...)...)
		case 1:
			if at < len(b) {
				b = append(b[:at:at], b[at+1:]...)
			}
		default:
			if at < len(b) {
				b[at] = pieces[r.IntN(len(pieces))]
			}
		}
	}
	return string(b)
}

// nests returns the depth of a valid document.
func nests(doc string) int {
	depth, most, d := 0, 0, json.NewDecoder(strings.NewReader(doc))
	for {
		token, err := d.Token()
		if err != nil {
			return most
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			most = max(most, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

// spelled returns every token of a document, with numbers as they are written.
func spelled(t *testing.T, doc string) (tokens []any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err == io.EOF {
			return tokens
		}
		require.NoError(t, err, "%q", doc)
		tokens = append(tokens, token)
	}
}

func readsAsGo(t *testing.T, p *program, doc string) {
	t.Helper()
	answer := p.ask('j', doc)
	if good := utf8.ValidString(doc) && json.Valid([]byte(doc)) && nests(doc) <= 64; !good {
		require.Equal(t, "!", answer, "%q is refused", doc)
		return
	}
	require.True(t, json.Valid([]byte(answer)), "%q is written as %q", doc, answer)
	require.Equal(t, spelled(t, doc), spelled(t, answer), "%q", doc)
}

// The header accepts what encoding/json accepts, except bytes that are not UTF-8 and too deep nesting, and returns
// every token.
func theReaderReadsAsGoDoes(t *testing.T, p *program) {
	r := rand.New(rand.NewPCG(1, 2))
	rounds := 5000
	if os.Getenv("TESTS") == "long" {
		rounds = 500_000
	}
	for _, doc := range documents() {
		readsAsGo(t, p, doc)
	}
	for range rounds {
		docs := documents()
		readsAsGo(t, p, mutated(r, docs[r.IntN(len(docs))]))
	}
}

func theWriterQuotesEveryText(t *testing.T, p *program) {
	for _, text := range []string{"", "a\"b\\c/d", "\x00\x1f\x7f\n\t", "é漢😀", "\xff", "a\xc3", "\xed\xa0\x80", "\u2028"} {
		var back string
		require.NoError(t, json.Unmarshal([]byte(p.ask('q', text)), &back))
		assert.Equal(t, strings.Map(func(r rune) rune { return r }, text), back, "%q", text) // Map replaces bytes that are not UTF-8
	}
}

func integersHave64Bits(t *testing.T, p *program) {
	for _, number := range []string{"0", "-0", "7", "4611686018427387905", "9007199254740993", "9223372036854775807", "9223372036854775808",
		"-9223372036854775808", "-9223372036854775809", "18446744073709551616", "99999999999999999999999", "1.0", "1e3", `"7"`, "true"} {
		want := "!"
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			want = strconv.FormatInt(n, 10)
		}
		assert.Equal(t, want, p.ask('i', number), number)
	}
}

func digestsAreSHA256(t *testing.T, p *program) {
	for n := range 200 {
		text := strings.Repeat("é", n)[:n]
		sum := sha256.Sum256([]byte(text))
		assert.Equal(t, hex.EncodeToString(sum[:]), p.ask('d', text), "%d bytes", n)
	}
}

// A scope's id equals the one that the sdk makes from provider, namespace, run, person, agent and generation.
func scopeIDsAreTheSDKs(t *testing.T, p *program) {
	rules := sdk.IDRules{Plain: sdk.AlphaNumeric, Escape: '_', Separator: '-', Max: 100}
	for _, ids := range [][3]string{{"team1", "2ann", ""}, {"team12", "ann", ""}, {"team1", "2", "ann"}, {"a-b", "c_d", "*/.. "},
		{"é😀", "\x01", "\""}, {strings.Repeat("r", 60), strings.Repeat("p", 60), "a"}} {
		envelope, err := json.Marshal(map[string]any{"generation": 3,
			"scope": map[string]string{"run_id": ids[0], "persona_id": ids[1], "agent_id": ids[2]}})
		require.NoError(t, err)
		assert.Equal(t, sdk.NativeID(rules, "p", "lab", ids[0], ids[1], ids[2], "3"), p.ask('s', string(envelope)), "%q", ids)
	}
}

func timesAreGos(t *testing.T, p *program) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		at := time.Unix(r.Int64N(250_000_000_000)-62_000_000_000, r.Int64N(1e9)).In(time.FixedZone("", 900*(r.IntN(96)-48)))
		if at.Year() < 1 || at.Year() > 9999 {
			continue
		}
		assert.Equal(t, fmt.Sprintf("%d.%d", at.Unix(), at.Nanosecond()), p.ask('t', at.Format(time.RFC3339Nano)), at)
	}
	for _, text := range []string{"", "2026-03-01", "2026-03-01T09:30:00", "2026-13-01T09:30:00Z", "2026-03-01T09:30:00+1", "2026-03-01T09:30:00.Z",
		"2026-03-01T09:30:00Zx"} {
		assert.Equal(t, "!", p.ask('t', text), text)
	}
}

func noTextOpensOrClosesTheElement(t *testing.T, p *program) {
	for _, text := range []string{"</memory-context>", "<memory-context>", "< / Memory-Context", "<\u200bmemory-context>", "＜memory-context>",
		"‹/memory-context›", "<mem", "<", "</", "<ｍemory-context>", "\u1438memory-context>", "<\nmemory-context"} {
		escaped := p.ask('e', text)
		assert.Negative(t, abi.NextContextTag(escaped, true), "%q is escaped as %q", text, escaped)
		assert.Equal(t, text, strings.Replace(escaped, "\\", "", 1))
		assert.Negative(t, abi.NextContextTag(p.ask('a', text), false), "%q, in an attribute", text)
	}
	for _, text := range []string{"a < b", "<3", "<b>bold</b>", "早くメモ", "x<=y", ""} {
		assert.Equal(t, text, p.ask('e', text))
	}
	assert.Equal(t, "&amp;&#60;&gt;&quot;  é", p.ask('a', "&<>\"\n\té"))
}

// fitResult is the program's result for a fit.
type fitResult struct {
	Text     string         `json:"text"`
	Count    int            `json:"count"`
	Evidence []abi.Evidence `json:"evidence"`
	abi.Trace
}

func contextsFitAndSayWhatTheyShow(t *testing.T, p *program) {
	texts := []string{"My cat is called Zorvex.", "Zwei\r\nZeilen\n- keine dritte\n", "</memory-context>", "漢字と😀"}
	own := []string{"My cat is called Zorvex.", "Zwei\n  Zeilen\n  - keine dritte", "<\\/memory-context>", "漢字と😀"}
	for _, frame := range []string{"", "full", "compact", "minimal"} {
		for limit := 0; limit < 320; limit++ {
			request, err := json.Marshal(map[string]any{"texts": texts, "frame": frame,
				"budget": map[string]int{"max_tokens": limit, "max_items": 3 + limit%2, "min_tokens": 100}})
			require.NoError(t, err)
			var f fitResult
			require.NoError(t, json.Unmarshal([]byte(p.ask('f', string(request))), &f))
			require.LessOrEqual(t, len(f.Text), limit) // one token per byte
			require.True(t, utf8.ValidString(f.Text))
			require.EqualValues(t, len(f.Text), *f.TokenCount)
			require.Equal(t, f.Text == "", f.Count == 0)
			require.Len(t, f.Evidence, f.Count)
			words := 0
			for i, e := range f.Evidence {
				shown := f.Text[e.Shown.Start:e.Shown.End]
				words += len(shown)
				require.True(t, strings.HasPrefix(own[i], shown), "%q", shown)
				require.Equal(t, shown == own[i], e.Shown.Whole, "%q", shown)
				if frame == "compact" {
					require.Contains(t, f.Text[:e.Shown.Start], fmt.Sprintf("\nm%d 2026-03-01 ", i+1))
				}
			}
			require.EqualValues(t, len(f.Text)-words, *f.FrameTokens)
			require.EqualValues(t, 7, *f.BudgetApplied["max_items"].Sent)
			require.EqualValues(t, f.Count, *f.BudgetApplied["max_items"].Shown)
			require.Contains(t, f.BudgetApplied, "max_tokens")
			require.Contains(t, f.BudgetApplied, "min_tokens")
			if f.Text != "" {
				require.True(t, strings.HasPrefix(f.Text, `<memory-context backend="p" scope="r/&#60;p&gt;" condition_kind="control" times="UTC">`+"\n"), f.Text)
				require.True(t, strings.HasSuffix(f.Text, "\n</memory-context>"))
			}
			if limit > 300 {
				require.Equal(t, 3+limit%2, f.Count)
			}
		}
	}
}

func whatABackendSaysBecomesAnAnswerOrAnError(t *testing.T, p *program) {
	assert.Equal(t, `answer {"status":"ok"}`, p.ask('h', `{"status":"ok"}`))
	for body, want := range map[string]string{
		"":           `{"code":"unavailable","retryable":true,"retry_after_ms":2000,"native":{"status":503}}`,
		"<html>":     `{"code":"backend","native":{"status":200,"body":"<html>"}}`,
		"{\"a\":\"x": `{"code":"backend","native":{"status":200,"body":"{\"a\":\"x"}}`,
	} {
		text, isError := strings.CutPrefix(p.ask('h', body), "error ")
		require.True(t, isError, body)
		var got, wanted abi.Error
		require.NoError(t, json.Unmarshal([]byte(text), &got), text)
		require.NoError(t, json.Unmarshal([]byte(want), &wanted))
		assert.NotEmpty(t, got.Message)
		assert.Equal(t, "health", got.Route)
		got.Message, got.Route = "", ""
		assert.Equal(t, wanted, got)
	}
}
