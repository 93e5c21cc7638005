package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// setupScope has nothing to prepare. Existed reports whether the scope holds messages.
func setupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	st := state.Of(c)
	held := readCollection(st)
	return &abi.SetupReceipt{Ready: true, Existed: sdk.Ptr(held.existing() > 0),
		Trace: &abi.Trace{BackendName: s.config.Provider}}, st.Err()
}

// resetScope counts the messages. The host removes them with the generation's state, in the transaction that starts
// the next one.
func resetScope(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	st := state.Of(c)
	held := readCollection(st)
	return &abi.ResetReceipt{Status: abi.ResetDone, Removed: map[string]*int64{"message": sdk.Ptr(held.existing())},
		OldGeneration: c.Generation,
		NewGeneration: c.Generation + 1, Trace: &abi.Trace{BackendName: s.config.Provider}}, st.Err()
}

// health is ok unless the embedder fails, which makes it degraded: the state is the host's.
func health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	h := &abi.BackendHealth{Status: abi.HealthOK, BackendName: s.config.Provider, ConsistencyModel: "immediate",
		NativeMemoryTypes: []string{"message"}, NativeIngestModes: []string{"verbatim"},
		NativeQueryModes: []string{"bm25"},
		Isolation:        "hard", PetObservability: "strong"}
	if s.embedder != nil {
		h.NativeQueryModes = append(h.NativeQueryModes, "vector")
		s.embedder.health(c, h)
	}
	return h, nil
}

// readiness is always ready: a message is stored and indexed with its receipt. It is degraded while some messages have
// no vector and can only be found by their words.
func readiness(c *sdk.Call, _ *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	ready := &abi.BackendReadiness{Status: abi.ReadinessReady, Method: "indexed with the receipt"}
	if s.embedder == nil {
		return ready, nil
	}
	st := state.Of(c)
	held, v := readCollection(st), readVectorState(st)
	if v.model != s.embedder.model {
		v.done = 0
	}
	if v.done < held.messages {
		ready.Status = abi.ReadinessDegraded
		ready.Warnings = []string{notEmbedded(held.messages-v.done, &held)}
	}
	return ready, st.Err()
}

// findEvent looks an event up by its id. The result is certain, because messages and receipt are committed together.
func findEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	st, x := state.Of(c), eventEntry{}
	if st.Load(eventKey(r.EventID), x.members()...) == 0 {
		return &abi.FindEventAnswer{Found: "absent"}, st.Err()
	}
	return &abi.FindEventAnswer{Found: "present", NativeIDs: x.nativeIDs()}, st.Err()
}

// inventory counts the messages and hashes the keys of their events with their versions; it reads no message.
func inventory(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	st := state.Of(c)
	held := readCollection(st)
	var digest sdk.Digest
	for item := range st.Items(abi.StateListRequest{Prefix: "event"}) {
		digest.Add(item.Key + " " + sdk.Itoa(item.Version) + "\n")
	}
	return &abi.Inventory{Kinds: []abi.InventoryKind{{Kind: "message", Count: held.existing(), Digest: digest.Hex()}},
		Complete:  true,
		Quiescent: true, Trace: &abi.Trace{BackendName: s.config.Provider, NativeOperation: "state_list"}}, st.Err()
}
