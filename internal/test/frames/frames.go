// Package frames holds a provider's formatter to what every frame promises, on conversations.
package frames

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/chats"
	"github.com/memhost/memhost/internal/text/tokens"
	"github.com/memhost/memhost/sdk/sdktest"
)

// share is how much of the compact frame's tokens are the memories' own words in real conversations, at least. Turns of
// examples/demo are shorter.
const (
	share     = 0.6
	demoShare = 0.55
)

// most bounds the turns of one conversation.
const most = 80

// Check records a conversation, that of examples/demo or with CHATS=DIR the first chat of a folder, asks in every
// frame, and holds the answers to what is promised: no chosen id, shown where it says, mostly own words in the compact
// frame, and times in UTC that are said to be, though the turns come in two other zones.
func Check(t *testing.T, h *sdktest.Host, scope abi.MemoryScope, record func(*abi.MemoryEvent),
	retrieve func(query string) *abi.RetrieveResult) {
	t.Helper()
	events, err := chats.Events()
	require.NoError(t, err)
	events = slices.DeleteFunc(events, func(e abi.MemoryEvent) bool { return e.RunID != events[0].RunID })
	events = events[:min(len(events), most)]
	var queries []string
	zones := []*time.Location{time.FixedZone("", 9*60*60), time.FixedZone("", -8*60*60)}
	local, inUTC := map[string]bool{}, map[string]bool{}
	for i := range events {
		e := events[i]
		at, err := abi.ParseTime(e.Timestamp)
		require.NoError(t, err)
		at = at.In(zones[i%len(zones)])
		e.Timestamp = at.Format(time.RFC3339)
		local[at.Format(minute)], inUTC[at.UTC().Format(minute)] = true, true
		e.RunID, e.UserID, e.EventID, e.SessionID = scope.RunID, scope.PersonaID, "answer-"+e.EventID,
			"gold-"+e.SessionID
		record(&e)
		if i%(len(events)/5+1) == 0 {
			queries = append(queries, *e.Messages[0].Content)
		}
	}
	counter, err := tokens.New("cl100k_base")
	require.NoError(t, err)
	count := func(text string) float64 { return float64(counter.Count([]byte(text))) }
	for _, frame := range []abi.Frame{abi.FrameFull, abi.FrameCompact, abi.FrameMinimal} {
		h.Reframe(frame)
		var all, own float64
		items := 0
		for _, query := range queries {
			result := retrieve(query)
			text := result.FormattedContext
			require.NotEmpty(t, text)
			require.NotContains(t, text, "answer-")
			require.NotContains(t, text, "gold-")
			require.NotRegexp(t, `\d\d:\d\d(:[\d.]+)?(\+09:00|-08:00)`, text)
			for _, at := range minutes.FindAllString(text, -1) {
				at = strings.Replace(at, "T", " ", 1)
				require.True(t, inUTC[at] || !local[at], "%s is local time", at)
			}
			if frame != abi.FrameFull {
				require.Contains(t, text, ` times="UTC">`)
			}
			all += count(text)
			for _, e := range result.Evidence {
				if e.Shown != nil {
					items++
					shown := text[e.Shown.Start:e.Shown.End]
					own += count(shown)
					require.True(t, !e.Shown.Whole || strings.Contains(bare(shown), bare(e.Text)), "%q is not %q",
						shown, e.Text)
				}
			}
		}
		require.NotZero(t, items)
		t.Logf("%-7s %4.0f%% own words, %d items, %.0f tokens", frame, 100*own/all, items, all)
		if frame == abi.FrameCompact {
			least := share
			if os.Getenv(chats.Variable) == "" {
				least = demoShare
			}
			require.GreaterOrEqual(t, own/all, least)
		}
	}
}

// minute is a time of day as contexts have it.
const minute = "2006-01-02 15:04"

var minutes = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d`)

// bare is a text without blanks and backslashes.
func bare(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), ""), "\\", "")
}
