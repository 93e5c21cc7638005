package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// setupScope has nothing to prepare: the branch main is there from the start.
func setupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	l, err := open(c)
	if err != nil {
		return nil, err
	}
	items, _, err := l.List(abi.StateListRequest{Limit: 1})
	if err != nil {
		return nil, err
	}
	r := &abi.SetupReceipt{Ready: true, Existed: sdk.Ptr(len(items) > 0), Trace: l.s.trace("open")}
	if _, warning, err := l.head(); err != nil {
		return nil, err
	} else if warning != "" {
		r.Warnings = []string{warning}
	}
	return r, nil
}

// resetScope counts what there is. The host removes it with the generation's state, in the transaction that starts the next one: the only real erasure.
func resetScope(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	l, err := open(c)
	if err != nil {
		return nil, err
	}
	removed := map[string]*int64{}
	for _, kind := range []string{eventPrefix, commitPrefix, branchPrefix, inboxPrefix, deadPrefix} {
		n, _, err := l.tally(kind)
		if err != nil {
			return nil, err
		}
		removed[strings.TrimSuffix(kind, "/")] = &n
	}
	return &abi.ResetReceipt{Status: abi.ResetDone, Removed: removed, OldGeneration: c.Generation, NewGeneration: c.Generation + 1, Trace: l.s.trace("reset")}, nil
}

// tally counts the keys under a prefix and hashes them with their versions.
func (l *ledger) tally(prefix string) (n int64, digest string, err error) {
	var sum sdk.Digest
	err = l.Each(abi.StateListRequest{Prefix: prefix}, func(item sdk.Item) error {
		sum.Add(item.Key + " " + sdk.Itoa(item.Version) + "\n")
		n++
		return nil
	})
	return n, sum.Hex(), err
}

// inventory counts the objects of the ledger. Views are derived and not counted.
func inventory(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	l, err := open(c)
	if err != nil {
		return nil, err
	}
	list := &abi.Inventory{Complete: true, Quiescent: true, Trace: l.s.trace("state_list")}
	for _, kind := range []string{eventPrefix, commitPrefix, branchPrefix, inboxPrefix, deadPrefix} {
		n, digest, err := l.tally(kind)
		if err != nil {
			return nil, err
		}
		list.Kinds = append(list.Kinds, abi.InventoryKind{Kind: strings.TrimSuffix(kind, "/"), Count: n, Digest: digest})
		list.Quiescent = list.Quiescent && (kind != inboxPrefix || n == 0)
	}
	return list, nil
}

// findEvent looks an event up by its id: exact, since ledger and receipt are committed together.
func findEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	l, err := open(c)
	if err != nil {
		return nil, err
	}
	known, version, err := l.Get(sourceKey(r.EventID))
	if err != nil {
		return nil, err
	}
	if version == 0 {
		return &abi.FindEventAnswer{Found: "absent"}, nil
	}
	answer := &abi.FindEventAnswer{Found: "present"}
	switch _, id, _ := strings.Cut(string(known), " "); {
	case isID(id):
		k, err := l.theCommit(id)
		if err != nil {
			return nil, err
		}
		answer.NativeIDs = k.Events
	case id != "":
		answer.Markers = []string{r.EventID}
	}
	return answer, nil
}

// health is ok without a model: the state is the host's own. With one it asks the endpoint. What extraction could not do stands in readiness: health has
// no scope.
func health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	l, err := open(c)
	if err != nil {
		return nil, err
	}
	types := []string{"fact", "observation"}
	if l.s.llm != nil {
		h := nanobot.Health(c, l.s.config, *l.s.llm, types)
		h.NativeQueryModes = []string{"newest_first"}
		return h, nil
	}
	return &abi.BackendHealth{Status: abi.HealthOK, BackendName: l.s.config.Provider, ConsistencyModel: "immediate", NativeMemoryTypes: types,
		NativeIngestModes: []string{"verbatim"}, NativeQueryModes: []string{"newest_first"}, Isolation: "hard", PetObservability: "strong"}, nil
}

// entryOf is the entry to which an event of the ledger belongs; nil where there is none.
func (l *ledger) entryOf(v *view, eventID string) (*entry, error) {
	if !isID(eventID) {
		return nil, nil
	}
	lineage, err := v.owner(eventID)
	if err != nil || lineage == "" {
		return nil, err
	}
	return v.get(lineage)
}

// mayShow leaves out what never goes out.
func (l *ledger) mayShow(e *entry) bool {
	return e.Sensitivity != confidential || l.s.exposeConfidential
}
