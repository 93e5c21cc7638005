package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// setupScope has nothing to prepare: the branch main is there from the start.
func setupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	return withLedger(c, func(l *ledger) *abi.SetupReceipt {
		items, _ := l.List(abi.StateListRequest{Limit: 1})
		r := &abi.SetupReceipt{Ready: true, Existed: sdk.Ptr(len(items) > 0), Trace: l.s.trace("open")}
		if _, warning := l.head(); warning != "" {
			r.Warnings = []string{warning}
		}
		return r
	})
}

// objects are the prefixes of the counted keys. Views are derived and not counted.
var objects = []string{eventPrefix, commitPrefix, branchPrefix, inboxPrefix, deadPrefix}

// resetScope counts what is removed. The host removes it with the generation's state, in the transaction that starts
// the next one. This is the only complete erasure.
func resetScope(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	return withLedger(c, func(l *ledger) *abi.ResetReceipt {
		removed := map[string]*int64{}
		for _, prefix := range objects {
			kind := l.tally(prefix)
			removed[kind.Kind] = &kind.Count
		}
		return &abi.ResetReceipt{Status: abi.ResetDone, Removed: removed, OldGeneration: c.Generation,
			NewGeneration: c.Generation + 1, Trace: l.s.trace("reset")}
	})
}

// tally counts the keys under a prefix and hashes them with their versions.
func (l *ledger) tally(prefix string) abi.InventoryKind {
	kind := abi.InventoryKind{Kind: strings.TrimSuffix(prefix, "/")}
	var sum sdk.Digest
	for item := range l.Items(abi.StateListRequest{Prefix: prefix}) {
		sum.Add(item.Key + " " + sdk.Itoa(item.Version) + "\n")
		kind.Count++
	}
	kind.Digest = sum.Hex()
	return kind
}

// inventory counts the objects of the ledger.
func inventory(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	return withLedger(c, func(l *ledger) *abi.Inventory {
		list := &abi.Inventory{Complete: true, Quiescent: true, Trace: l.s.trace("state_list")}
		for _, prefix := range objects {
			kind := l.tally(prefix)
			list.Kinds = append(list.Kinds, kind)
			list.Quiescent = list.Quiescent && (prefix != inboxPrefix || kind.Count == 0)
		}
		return list
	})
}

// findEvent looks an event up by its id. The result is certain, because ledger and receipt are committed together.
func findEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	return withLedger(c, func(l *ledger) *abi.FindEventAnswer {
		known, version := l.Get(sourceKey(r.EventID))
		if version == 0 {
			return &abi.FindEventAnswer{Found: "absent"}
		}
		answer := &abi.FindEventAnswer{Found: "present"}
		switch _, id, _ := strings.Cut(string(known), " "); {
		case isID(id):
			answer.NativeIDs = l.theCommit(id).Events
		case id != "":
			answer.Markers = []string{r.EventID}
		}
		return answer
	})
}

// health is ok without a model: the state is the host's own. With one it asks the endpoint. Turns
// that could not be extracted are reported by readiness, since health has no scope.
func health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	types, modes := []string{"fact", "observation"}, []string{"newest_first"}
	if s.llm != nil {
		h := s.llm.Health(c, s.config, types)
		h.NativeQueryModes = modes
		return h, nil
	}
	return &abi.BackendHealth{Status: abi.HealthOK, BackendName: s.config.Provider, ConsistencyModel: "immediate",
		NativeMemoryTypes: types,
		NativeIngestModes: []string{"verbatim"}, NativeQueryModes: modes, Isolation: "hard",
		PetObservability: "strong"}, nil
}
