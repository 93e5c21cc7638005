package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// provenance by native id is the memory with its history; by event id, the memories that the event's add produced. mem0
// keeps no link from a memory to the messages that it came from: the event id in its metadata is all.
//
// Errors: not_found for an id that is not of this scope; unsupported for a range of time.
func provenance(b *backend, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	out := &abi.Provenance{Trace: &abi.Trace{BackendName: b.config.Provider, ResultState: abi.ResultEmpty}}
	var err error
	switch {
	case r.NativeID != "":
		err = b.historyOf(r.NativeID, out)
	case r.EventID != "":
		err = b.memoriesOf(r, out)
	default:
		err = abi.NewError(abi.CodeUnsupported, "from, to: mem0 cannot look up memories by a range of time").
			WithHint("ask by event_id or native_id")
	}
	if err != nil {
		return nil, err
	}
	for _, item := range out.Items {
		out.Trace.NativeIDs = append(out.Trace.NativeIDs, item.Evidence.NativeID)
		out.Trace.ResultState = abi.ResultResults
	}
	return out, nil
}

// ownMemory fetches a memory of this scope.
//
// Errors: not_found, also for another scope's memory and for an invalid id.
func (b *backend) ownMemory(id string) (*memory, error) {
	nobody := abi.NewError(abi.CodeNotFound, "no memory of this scope has the id "+id)
	if !isUUID(id) {
		return nil, nobody // mem0 would answer 502
	}
	m, err := b.getMemory(id)
	if abi.CodeOf(err) == abi.CodeIsolationBreach || err == nil && m == nil {
		return nil, nobody
	}
	return m, err
}

func isUUID(id string) bool {
	if len(id) != 36 {
		return false
	}
	for i := range len(id) {
		c := id[i] | 0x20
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (id[i] == '-') || !dash && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func (b *backend) historyOf(id string, out *abi.Provenance) error {
	m, err := b.ownMemory(id)
	if err != nil {
		return err
	}
	route := b.route("history")
	out.Items, out.Trace.NativeOperation = []abi.ProvenanceItem{b.item(m, 1)}, route
	body, err := b.send(request{route: route, params: memoryParam(id)})
	if err != nil {
		return err
	}
	if wire.Check(body) != nil || wire.Kind(body) != wirejson.Array {
		return unusable(route, body, "it is not a list")
	}
	for _, native := range wire.Items(body) {
		e := abi.Evidence{Rank: int64(len(out.Items) + 1), NativeType: "history"}
		wire.Pick(native, "id", &e.NativeID, "new_memory", &e.Text, "event", &e.Group, "created_at", &e.CreatedAt,
			"updated_at", &e.UpdatedAt)
		e.CreatedAt, _ = readTime(e.CreatedAt)
		e.UpdatedAt, _ = readTime(e.UpdatedAt)
		out.Items = append(out.Items, abi.ProvenanceItem{Evidence: e, Native: native})
	}
	return nil
}

// memoriesOf lists an event's memories; it searches for them if the server cannot list by label.
func (b *backend) memoriesOf(r *abi.ProvenanceRequest, out *abi.Provenance) (err error) {
	limit := r.Limit
	if limit <= 0 || limit > pageMax {
		limit = pageMax
	}
	var rows []*memory
	event := filter{keyEvent, sdk.Text(r.EventID)}
	switch {
	case b.platform():
		out.Trace.NativeOperation = "POST /v3/memories/"
		rows, _, err = b.listPlatform(1, limit, event)
	case b.surface.gateway:
		out.Trace.NativeOperation = "POST /memories/list"
		rows, err = b.listFiltered(limit, event)
	default:
		out.Trace.NativeOperation = "POST /search"
		if rows, err = b.searchEvent(event, limit); len(rows) == 0 && !b.exact() {
			out.Trace.Warnings = append(out.Trace.Warnings, "approximate_search: mem0's index may miss rows; that "+
				"nothing was found proves nothing")
		}
	}
	for i, m := range rows {
		out.Items = append(out.Items, b.item(m, i+1))
	}
	return err
}

func (b *backend) item(m *memory, rank int) abi.ProvenanceItem {
	return abi.ProvenanceItem{Native: m.native, Evidence: m.evidence(rank, b.backdate)}
}
