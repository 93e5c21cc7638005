package nanobot

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// Health looks at the endpoint's list of models. A scope's own failures stand in its readiness: health has no scope.
func Health(c *sdk.Call, config *abi.GuestConfig, l LLM, types []string) *abi.BackendHealth {
	h := &abi.BackendHealth{Status: abi.HealthOK, BackendName: config.Provider, ConsistencyModel: "async_derived", NativeMemoryTypes: types,
		NativeIngestModes: []string{"llm"}, NativeQueryModes: []string{"whole"}, Isolation: "hard", PetObservability: "strong"}
	headers := l.authorize(abi.Members[string]{{Name: "accept", Value: "application/json"}})
	head, body, err := c.HTTP(abi.HTTPRequest{Route: ModelsRoute, Headers: headers, TimeoutMS: max(1, min(l.TimeoutMS, c.Remaining()-500))}, nil)
	said := ""
	switch {
	case err != nil:
		said = abi.AsError(err).Message
	case head.Status < 200 || head.Status > 299:
		said = "GET /models answered " + sdk.Itoa(head.Status)
	case !isModels(body):
		said = "GET /models answered what is no list of models"
	}
	if said != "" {
		h.Status = abi.HealthDegraded
		h.Warnings = append(h.Warnings, ReasonUnavailable+": "+said+"; turns are stored, and worked off when the model is back")
	}
	return h
}

func isModels(body []byte) bool {
	found := false
	err := jsontext.DecodeBytes(body).Obj(func(d *jsontext.Decoder, key string) error {
		found = found || key == "data" && (d.Next() == jsontext.Array || d.Next() == jsontext.Null) // Ollama without a model answers null
		return d.Skip()
	})
	return err == nil && found
}

// CountMessages counts the messages of all sessions. The digest is over their names and how many there are.
func CountMessages(c *sdk.Call) (abi.InventoryKind, error) {
	kind := abi.InventoryKind{Kind: "message"}
	sessions, err := Sessions(c)
	var digest sdk.Digest
	for _, s := range sessions {
		kind.Count += s.Messages
		digest.Add(s.key + " " + sdk.Itoa(s.Messages) + "\n")
	}
	kind.Digest = digest.Hex()
	return kind, err
}

// Reset is the receipt of a reset of a scope that has these counts.
func Reset(c *sdk.Call, provider string, counts []abi.InventoryKind) *abi.ResetReceipt {
	removed := map[string]*int64{}
	for i := range counts {
		removed[counts[i].Kind] = &counts[i].Count
	}
	return &abi.ResetReceipt{Status: abi.ResetDone, Removed: removed, OldGeneration: c.Generation, NewGeneration: c.Generation + 1, Trace: &abi.Trace{BackendName: provider}}
}
