package convert

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// readAll reads everything; errs has the errors in lines.
func readAll(t *testing.T, text string, o Options) (items []Item, errs []string) {
	t.Helper()
	r, err := NewReader(strings.NewReader(text), o)
	require.NoError(t, err)
	for {
		item, err := r.Next()
		var line *LineError
		switch {
		case err == io.EOF:
			return items, errs
		case errors.As(err, &line):
			require.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
			errs = append(errs, err.Error())
		default:
			require.NoError(t, err)
			require.NoError(t, item.Event.Validate())
			items = append(items, item)
		}
	}
}

// given has options with which a bare list of messages is complete.
func given() Options {
	return Options{RunID: "r", UserID: "u", SessionID: "s",
		Start: time.Date(2026, 3, 1, 9, 30, 0, 0, time.FixedZone("", 3600))}
}

// TestGolden reads testdata/*.txt with the options of given: `-- in --` has the lines, `-- out --` the result. Set
// UPDATE_GOLDEN=1 to write it.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			head, rest, ok := strings.Cut(string(text), "-- in --\n")
			require.True(t, ok)
			in, want, _ := strings.Cut(rest, "-- out --\n")
			o := given()
			o.SkipAttachments = strings.Contains(head, "skip attachments")
			got := describe(t, in, o)
			if os.Getenv("UPDATE_GOLDEN") != "" {
				require.NoError(t, os.WriteFile(file, []byte(head+"-- in --\n"+in+"-- out --\n"+got), 0o644))
				return
			}
			require.Equal(t, want, got)
		})
	}
}

func describe(t *testing.T, in string, o Options) string {
	r, err := NewReader(strings.NewReader(in), o)
	require.NoError(t, err)
	var b strings.Builder
	for {
		item, err := r.Next()
		var line *LineError
		switch {
		case err == io.EOF:
			return b.String()
		case errors.As(err, &line):
			b.WriteString("! " + line.Error() + "\n")
			if line.Err.Hint != "" {
				b.WriteString("  hint: " + line.Err.Hint + "\n")
			}
		default:
			e := *item.Event
			b.WriteString("event " + e.EventID + " " + e.RunID + "/" + e.UserID + "/" + e.SessionID + " " + e.TurnID +
				" " + e.Timestamp)
			for _, label := range []string{e.Scenario, e.Context, e.Attribute} {
				if label != "" {
					b.WriteString(" " + label)
				}
			}
			if item.Attachments > 0 {
				b.WriteString(" (attachments left out)")
			}
			b.WriteString("\n")
			for i := range e.Messages {
				b.WriteString("  " + string(abi.Marshal(&e.Messages[i])) + "\n")
			}
		}
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	for _, o := range []Options{{Format: "csv"}, {MaxLine: -1}, {Step: -time.Second}} {
		_, err := NewReader(strings.NewReader(""), o)
		require.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), "%+v", o)
	}
}

func TestLongLinesArePassedOver(t *testing.T) {
	o := given()
	o.MaxLine = 200
	long := `[{"role":"user","content":"` + strings.Repeat("x", 70000) + `"}]`
	items, errs := readAll(t, `[{"role":"user","content":"a"}]`+"\n"+long+"\r\n"+`[{"role":"user","content":"b"}]`, o)
	require.Len(t, items, 2)
	require.Equal(t, []string{"line 2: longer than 200 bytes"}, errs)
	require.Equal(t, 3, items[1].Line)
	require.Equal(t, "turn-0003", items[1].Event.TurnID, "the long line counts as a turn: mended, it changes no other")
}

func TestALineOfExactlyTheLimitIsRead(t *testing.T) {
	for _, size := range []int{100, 65536, 65537, 70000} {
		line := `[{"role":"user","content":"` + strings.Repeat("x", size-30) + `"}]`
		require.Len(t, line, size)
		for _, end := range []string{"", "\n"} {
			o := given()
			o.MaxLine = size
			items, errs := readAll(t, line+end, o)
			require.Len(t, items, 1)
			require.Empty(t, errs)
			o.MaxLine = size - 1
			items, errs = readAll(t, line+end, o)
			require.Empty(t, items)
			require.Len(t, errs, 1)
		}
	}
}

func TestAStreamThatFailsIsNoBadLine(t *testing.T) {
	broken := errors.New("unplugged")
	r, err := NewReader(io.MultiReader(strings.NewReader("[{\"role\":\"user\",\"content\":\"a\"}]\n["),
		failingReader{broken}), given())
	require.NoError(t, err)
	_, err = r.Next()
	require.NoError(t, err)
	for range 2 {
		_, err = r.Next()
		require.ErrorIs(t, err, broken)
	}
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

func TestAGrownConversationKeepsItsTurns(t *testing.T) {
	const was = `[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"},{"role":"user","content":"Tea?"},{"role":"assistant","content":"Green"}`
	before, _ := readAll(t, was+"]\n", given())
	after, _ := readAll(t, was+`,{"role":"user","content":"Thanks"}]`, given())
	require.Len(t, after, 3)
	for i := range before {
		require.Equal(t, before[i].Event, after[i].Event)
	}
}

func TestAMendedLineChangesNoOther(t *testing.T) {
	const first, third = `[{"role":"user","content":"one"}]` + "\n", "\n" + `[{"role":"user","content":"three"}]` + "\n"
	bad, errs := readAll(t, first+`[{"role":"usr","content":"two"}]`+third, given())
	require.Len(t, errs, 1)
	mended, errs := readAll(t, first+`[{"role":"user","content":"two"}]`+third, given())
	require.Empty(t, errs)
	require.Equal(t, bad[0].Event, mended[0].Event)
	require.Equal(t, bad[1].Event, mended[2].Event)
}

func TestEqualTurnsAreTwo(t *testing.T) {
	const same = `[{"role":"user","content":"Thanks"},{"role":"assistant","content":"You're welcome"}]`
	items, _ := readAll(t, same+"\n"+same+"\n"+`[{"role":"user","content":"Thanks"},{"role":"user","content":"Thanks"}]`, given())
	ids := map[string]bool{}
	for _, item := range items {
		ids[item.Event.EventID] = true
	}
	require.Len(t, ids, 4)
}
