package plugins_test

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/cassettetest"
	"github.com/memhost/memhost/plugins"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "record the cassettes in testdata anew")

// TestCassettes compares what the built modules of the controls do with testdata, byte for byte.
func TestCassettes(t *testing.T) {
	blocks := map[string]string{"no_memory": `{}`, "full_history": `{}`,
		"static_profile": `{"profiles": [{"persona_id": "mara", "text": "Mara drinks green tea."}]}`,
		"oracle_ipas": `{"entries": [{"persona_id": "mara", "attribute": "hot_drink", "value": "coffee", "valid_from": "2026-01-01T00:00:00Z"},
			{"persona_id": "mara", "attribute": "hot_drink", "value": "green tea", "valid_from": "2026-02-01T00:00:00Z"}]}`}
	for _, m := range plugins.Builtin() {
		if blocks[m.Name] == "" {
			continue // the package of a backend's module has its own tests
		}
		t.Run(m.Name, func(t *testing.T) {
			cassettetest.Golden(t, *update, "testdata/"+m.Name+".cassette",
				host.ProviderConfig{Name: m.Name, Module: m.Wasm, Source: "builtin", Block: abi.Raw(blocks[m.Name])},
				func(s *host.Slot) { converse(t, s) })
		})
	}
}

var scope = abi.MemoryScope{RunID: "r1", PersonaID: "mara"}

// converse is a short session with a slot: turns, questions within several budgets, a repeated turn, read-only mode, an
// inventory, a reset.
func converse(t *testing.T, s *host.Slot) {
	ctx := context.Background()
	must := func(err error) { t.Helper(); require.NoError(t, err) }
	for i, text := range []string{"I like coffee, with oat milk.", "Könnten wir \"Tee\" <b>kaufen</b>? 🍵",
		"No more coffee for me; green tea it is."} {
		answer := fmt.Sprintf("Noted, %d.", i)
		e := &abi.MemoryEvent{EventID: fmt.Sprint("e", i), RunID: scope.RunID, UserID: scope.PersonaID,
			SessionID: fmt.Sprint("s", i/2), TurnID: fmt.Sprint("t", i),
			Timestamp: fmt.Sprintf("2026-02-0%dT10:00:00+01:00", i+1),
			Messages: []abi.Message{{Role: abi.RoleUser, Content: &text},
				{Role: abi.RoleAssistant, Content: &answer}}}
		for range 2 { // the second time it is a duplicate
			_, err := s.RecordEvent(ctx, e)
			must(err)
		}
	}
	for _, tokens := range []int64{0, 400, 60, 5} {
		r := &abi.RetrieveRequest{Query: "What should I order?", Scope: scope, SessionID: "s9", Attribute: "hot_drink",
			AsOf: "2026-03-01T00:00:00Z"}
		if tokens > 0 {
			r.Budget.MaxTokens = &tokens
		}
		result, err := s.Retrieve(ctx, r)
		must(err)
		_, err = s.FormatContext(ctx, &abi.FormatRequest{Result: *result, Budget: r.Budget, Scope: scope})
		must(err)
	}
	_, err := s.Retrieve(ctx, &abi.RetrieveRequest{Query: "Anything of somebody else?",
		Scope: abi.MemoryScope{RunID: "r1", PersonaID: "*"}, SessionID: "s9"})
	must(err)
	_, _ = s.Inventory(ctx, &abi.InventoryRequest{Scope: scope}) // unsupported is a valid answer
	_, err = s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "test"})
	must(err)
	_, err = s.ResetScope(ctx, scope)
	require.Error(t, err)
	_, err = s.SetMode(ctx, &abi.AdapterMode{Reason: "test"})
	must(err)
	_, err = s.Health(ctx)
	must(err)
	_, err = s.ResetScope(ctx, scope)
	must(err)
	_, err = s.Retrieve(ctx, &abi.RetrieveRequest{Query: "And now?", Scope: scope, SessionID: "s9"})
	must(err)
}
