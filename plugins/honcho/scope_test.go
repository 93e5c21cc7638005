package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

// hostileID draws ids as people use them, including look-alikes and ids that collide under naive templates.
func hostileID() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom([]string{"*", ".", "..", "a/b", "a", "A", "a-b", "a_b", "a_2d", "default",
		"user-alice", "会话", "🍵", "%2a", "a b", `"`, "'", strings.Repeat("x", 500),
		strings.Repeat("会", 170), "omni", "card_refresh"}), rapid.StringMatching(`[^\x00]{1,20}`))
}

func nativeOf(t sdktest.TB, block string, s abi.MemoryScope) *native {
	h := sdktest.New(t, sdktest.Options{Provider: "honcho", Config: block})
	c := h.Call(abi.OpRetrieve, s)
	settings, err := settingsOf(c)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return settings.native(c)
}

func TestTrap1IdsAreInjectiveAndLegalWhateverTheyAre(t *testing.T) {
	for _, block := range []string{`{}`, `{"fixed_workspace":"lab"}`} {
		t.Run("trap 1: block "+block, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				draw := func() (abi.MemoryScope, string) {
					return abi.MemoryScope{RunID: hostileID().Draw(t, "run"), PersonaID: hostileID().Draw(t, "persona"),
							AgentID: rapid.OneOf(rapid.Just(""), hostileID()).Draw(t, "agent")},
						hostileID().Draw(t, "session")
				}
				s1, session1 := draw()
				s2, session2 := draw()
				n1, n2 := nativeOf(t, block, s1), nativeOf(t, block, s2)
				for _, id := range append(append(n1.peers(), n1.workspace), n1.session(session1)) {
					require.Regexp(t, `^[a-zA-Z0-9_-]{1,100}$`, id)
				}
				require.Len(t, map[string]bool{n1.user: true, n1.agent: true, n1.tool(): true, n1.system(): true}, 4,
					"trap 2: four peers")
				same := s1 == s2
				require.Equal(t, same && session1 == session2, n1.workspace == n2.workspace &&
					n1.session(session1) == n2.session(session2))
				require.Equal(t, same, n1.workspace == n2.workspace && n1.user == n2.user)
			})
		})
	}
}

func TestGenerationsShareNoIds(t *testing.T) {
	h := sdktest.New(t, sdktest.Options{Provider: "honcho"})
	seen := map[string]bool{}
	for generation := range int64(3) {
		c := h.Call(abi.OpRetrieve, scope)
		c.Generation = generation + 1
		s, err := settingsOf(c)
		require.NoError(t, err)
		n := s.native(c)
		assert.False(t, seen[n.workspace])
		seen[n.workspace] = true
	}
}

func TestPeersStayLegible(t *testing.T) {
	n := nativeOf(t, `{}`, abi.MemoryScope{RunID: "run 1", PersonaID: "alice-b"})
	assert.Equal(t, map[string]string{"workspace": "mh-honcho--run_201-alice_2db--1", "user_peer": "user-alice-b",
		"assistant_peer": "agent-default", "tool_peer": "tool-default",
		"system_peer": "system-default"}, n.ids())
	assert.Equal(t, "s-sess_2f01", n.session("sess/01"))
}

func FuzzLabel(f *testing.F) {
	for _, s := range []string{"*", "travel", "100%", "%2a", "a\nb", "旅行", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l := label(s)
		require.NotEqual(t, "*", l, "a value * would drop the filter")
		require.NotContains(t, l, "*")
		require.Equal(t, s, unlabel(l))
	})
}

func FuzzMarker(f *testing.F) {
	f.Add("2026-07-01T12:00:00Z", int64(1), int64(20), "s-1", "ev 17 *")
	f.Fuzz(func(t *testing.T, at string, rows, tokens int64, session, event string) {
		m := marker{at, rows, tokens, session, event}
		back, ok := parseMarker(m.String())
		if strings.ContainsRune(at+session, ' ') || rows < 0 || tokens < 0 {
			return
		}
		require.True(t, ok)
		require.Equal(t, m, back)
		parseMarker(event) // never panics
	})
}

func TestMarkersOfOthersAreLeftAlone(t *testing.T) {
	assert.Empty(t, parseMarkers([]string{"", "job-8", "2 a 1 1 s e", "1 a x 1 s e", "1 a 1 -1 s e"}))
	assert.Equal(t, []marker{{"now", 1, 2, "s", "e e"}}, parseMarkers([]string{"1 now 1 2 s e e"}))
}
