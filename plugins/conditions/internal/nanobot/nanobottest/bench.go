package nanobottest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// Bench measures record_event and retrieve of a slot with no history, and with 20,000 lines of history and as many
// messages (HISTORY_LINES: another number), which history makes as files. No model is asked.
func (m Module) Bench(b *testing.B, history func(lines int) map[string]string) {
	most := 20_000
	if text := os.Getenv("HISTORY_LINES"); text != "" {
		var err error
		most, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	for _, lines := range []int{0, most} {
		s := m.Open(b, "")
		if lines > 0 {
			files := history(lines)
			var session strings.Builder
			session.WriteString(`{"_type":"metadata","key":"s","last_consolidated":0}` + "\n")
			for i := range lines {
				fmt.Fprintf(&session, `{"role":"user","content":"Message %d","timestamp":"2026-01-12T09:00:00"}`+"\n",
					i)
			}
			files["sessions/cw.jsonl"] = session.String()
			take(b, s, files)
		}
		b.Run(fmt.Sprintf("record/lines=%d", lines), func(b *testing.B) {
			for b.Loop() {
				s.Record(s.Turn("s", "I like oolong tea."))
			}
		})
		b.Run(fmt.Sprintf("retrieve/lines=%d", lines), func(b *testing.B) {
			for b.Loop() {
				_, err := s.Retrieve(b.Context(), &abi.RetrieveRequest{Query: "tea", Scope: s.Scope, SessionID: "s"})
				require.NoError(b, err)
			}
		})
	}
}

// take imports files in calls of 4 MB.
func take(b *testing.B, s *Slot, files map[string]string) {
	b.Helper()
	send := func(files map[string]string, goesOn, done bool) {
		_, err := s.NativeMutation(b.Context(), &abi.NativeMutation{Scope: s.Scope, Name: "import_files",
			Reason: "bench",
			Params: Params(b, files, goesOn, done)})
		require.NoError(b, err)
	}
	for path, text := range files {
		for goesOn := false; ; goesOn = true {
			part := text[:min(len(text), 4<<20)]
			send(map[string]string{path: part}, goesOn, false)
			if text = text[len(part):]; text == "" {
				break
			}
		}
	}
	send(nil, false, true)
}
