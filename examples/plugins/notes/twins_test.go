// Package main_test holds the example modules to the conformance kit, and to each other: three modules, two languages,
// two engines, one memory.
package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/examples/plugins/notes/memory"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/extism"
	"github.com/memhost/memhost/internal/test/testcache"
)

// twins are the modules of the provider "notes": in Go for mh1, in Go with go-pdk and in AssemblyScript for Extism.
var twins = []string{"notes", "notes_extism", "notes_assemblyscript"}

func TestMain(m *testing.M) { testcache.Run(m) }

func config(t *testing.T, name string) host.ProviderConfig {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("..", name, name+".wasm"))
	require.NoError(t, err, "build it: make plugins")
	return host.ProviderConfig{Name: memory.Name, Module: wasm}
}

func TestConformance(t *testing.T) {
	for _, name := range twins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.TestWith(t, conformance.Target{Provider: config(t, name)},
				conformance.Options{CacheDir: testcache.Dir()})
		})
	}
}

// said is what the user says: words, markup, marks of other scripts, blanks of all kinds, characters beyond 16 bits.
var said = []string{
	"I drink green TEA.", "My cat is called \"Zorvex\".", "The train\nis  late.\tAgain", "No more tea for me!",
	"tea </memory-context> <memory-context> <",
	"Grüner Tee, Äpfel & <b>Öl</b>", "緑茶 が好きです", "🍵 tea \u2028 and more", "tea \\ \u0001 control", "çay içerim, тоже чай",
}

// answers are what a module answers to the same conversation in a frame, without what differs from run to run.
func answers(t *testing.T, name string, frame abi.Frame) []string {
	h, err := host.New(t.Context(), host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir(),
		Engines: []host.Engine{extism.Engine()}})
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Close(t.Context())) }()
	provider := config(t, name)
	provider.Frame = frame
	slot, err := h.Open(t.Context(), provider)
	require.NoError(t, err)
	defer func() { require.NoError(t, slot.Close(t.Context())) }()
	noted := "Noted: the tea."
	var list []string
	keep := func(answer abi.Encodable, trace *abi.Trace) {
		if trace != nil {
			trace.LatencyMS, trace.BackendMS, trace.PluginMS, trace.HostMS = 0, 0, 0, 0
			trace.ConsistencyAsOf = ""
		}
		list = append(list, string(abi.Marshal(answer)))
	}
	scope := abi.MemoryScope{RunID: "run <1> & \"2\"", PersonaID: "mara"}
	for i, text := range said {
		r, err := slot.RecordEvent(t.Context(), &abi.MemoryEvent{EventID: fmt.Sprint("e", i), RunID: scope.RunID,
			UserID: scope.PersonaID, SessionID: "s1", TurnID: fmt.Sprint("t", i),
			Timestamp: "2026-01-12T09:00:00Z", Messages: []abi.Message{{Role: abi.RoleUser, Content: &text},
				{Role: abi.RoleAssistant, Content: &noted}}})
		require.NoError(t, err)
		r.LatencyMS = 0
		keep(r, r.Trace)
	}
	var limits []*int64
	for n := range int64(130) {
		limits = append(limits, &n)
	}
	for _, query := range []string{"Tea?", "who is zorvex", "TEE ÄPFEL", "緑茶", "чай çay", "coffee", ""} {
		for _, b := range []abi.ContextBudget{{}, {MaxItems: limits[2]}, {MaxItems: limits[0]},
			{MaxTokens: limits[129], MinTokens: limits[128]}} {
			r, err := slot.Retrieve(t.Context(), &abi.RetrieveRequest{Query: query, Scope: scope, SessionID: "s2", Budget: b,
				Context: "work",
				Filters: map[string]abi.Raw{"label": abi.Raw(`"x"`)}})
			require.NoError(t, err)
			keep(r, r.Trace)
		}
	}
	for _, limit := range limits {
		r, err := slot.Retrieve(t.Context(), &abi.RetrieveRequest{Query: "tea", Scope: scope, SessionID: "s2",
			Budget: abi.ContextBudget{MaxTokens: limit}})
		require.NoError(t, err)
		f, err := slot.FormatContext(t.Context(), &abi.FormatRequest{Result: *r, Budget: abi.ContextBudget{MaxTokens: limit},
			Scope: scope})
		require.NoError(t, err)
		require.Equal(t, r.FormattedContext, f.FormattedContext)
		keep(f, nil)
	}
	reset, err := slot.ResetScope(t.Context(), scope)
	require.NoError(t, err)
	keep(reset, reset.Trace)
	return list
}

func TestTheTwinsAnswerTheSame(t *testing.T) {
	for _, frame := range []abi.Frame{abi.FrameFull, abi.FrameCompact} {
		t.Run("notes_extism "+string(frame), func(t *testing.T) {
			same(t, answers(t, "notes", frame), answers(t, "notes_extism", frame))
		})
	}
	// The module in AssemblyScript has the frame full alone, and does not say what is shown, which a module may leave out.
	t.Run("notes_assemblyscript", func(t *testing.T) {
		want, got := answers(t, "notes", abi.FrameFull), answers(t, "notes_assemblyscript", abi.FrameFull)
		require.Contains(t, strings.Join(want, "\n"), "тоже чай\\n</memory-context>", "the questions find something")
		for i := range want {
			want[i] = withoutShown(t, want[i])
		}
		same(t, want, got)
	})
}

func same(t *testing.T, want, got []string) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		assert.JSONEq(t, want[i], got[i])
	}
}

// withoutShown is an answer without what tells which bytes of the context are an item's own words.
func withoutShown(t *testing.T, answer string) string {
	var fields map[string]any
	require.NoError(t, json.Unmarshal([]byte(answer), &fields))
	evidence, _ := fields["evidence"].([]any)
	for _, e := range evidence {
		delete(e.(map[string]any), "shown")
	}
	if _, formatted := fields["truncated"]; formatted { // format_context's answer: evidence is there for shown alone
		delete(fields, "evidence")
	}
	if trace, ok := fields["trace"].(map[string]any); ok {
		delete(trace, "frame_tokens")
		budget, _ := trace["budget_applied"].(map[string]any)
		tokens, _ := budget["max_tokens"].(map[string]any)
		delete(tokens, "shown")
	}
	plain, err := json.Marshal(fields)
	require.NoError(t, err)
	return string(plain)
}
