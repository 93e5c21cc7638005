package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// provenance by native id is the memory with its history; by event id, the memories that the event's add produced. mem0 keeps no link from a memory to the
// messages behind it: the event id in its metadata is all.
//
// Errors: not_found for an id that is not of this scope; unsupported for a range of time.
func provenance(c *sdk.Call, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	b, err := open(c)
	if err != nil {
		return nil, err
	}
	out := &abi.Provenance{Trace: &abi.Trace{BackendName: b.settings.config.Provider, ResultState: abi.ResultEmpty}}
	switch {
	case r.NativeID != "":
		err = b.historyOf(r.NativeID, out)
	case r.EventID != "":
		err = b.memoriesOf(r, out)
	default:
		err = abi.NewError(abi.CodeUnsupported, "from, to: mem0 cannot look up memories by a range of time").WithHint("ask by event_id or native_id")
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

// owned fetches a memory of this scope. One of another scope is not there for it, and neither is what is no id of mem0's.
func (b *backend) owned(id string) (*memory, error) {
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
	m, err := b.owned(id)
	if err != nil {
		return err
	}
	out.Items = append(out.Items, b.item(m, 1))
	route := "history"
	if b.platform() {
		route = "platform_history"
	}
	out.Trace.NativeOperation = route
	body, err := b.send(request{route: route, params: memoryParam(id)})
	if err != nil {
		return err
	}
	return readArray(route, body, func(d *jsontext.Decoder) error {
		native, err := d.Raw()
		if err != nil {
			return err
		}
		e := abi.Evidence{Rank: int64(len(out.Items) + 1), NativeType: "history", SourceEventIDs: nil}
		err = jsontext.DecodeBytes(native).Obj(func(d *jsontext.Decoder, key string) (err error) {
			switch key {
			case "id":
				e.NativeID, err = readText(d)
			case "new_memory":
				e.Text, err = readText(d)
			case "event":
				e.Group, err = readText(d)
			case "created_at":
				e.CreatedAt, err = readTime(d)
			case "updated_at":
				e.UpdatedAt, err = readTime(d)
			default:
				err = d.Skip()
			}
			return err
		})
		out.Items = append(out.Items, abi.ProvenanceItem{Evidence: e, Native: abi.Raw(native)})
		return err
	})
}

// memoriesOf lists an event's memories; a search finds them where there is no list by label.
func (b *backend) memoriesOf(r *abi.ProvenanceRequest, out *abi.Provenance) (err error) {
	limit := r.Limit
	if limit <= 0 || limit > pageMax {
		limit = pageMax
	}
	var rows []*memory
	if b.platform() {
		out.Trace.NativeOperation = "POST /v3/memories/"
		rows, _, err = b.listPlatform(1, limit, [2]string{keyEvent, r.EventID})
	} else if b.surface.gateway {
		out.Trace.NativeOperation = "POST /memories/list"
		rows, err = b.listFiltered([]filter{{keyEvent, sdk.Text(r.EventID)}}, limit)
	} else {
		out.Trace.NativeOperation = "POST /search"
		if rows, err = b.searchEvent(r.EventID, limit); len(rows) == 0 && !b.exact() {
			out.Trace.Warnings = append(out.Trace.Warnings, "approximate_search: mem0's index may miss rows; that nothing was found proves nothing")
		}
	}
	for i, m := range rows {
		out.Items = append(out.Items, b.item(m, i+1))
	}
	return err
}

func (b *backend) item(m *memory, rank int) abi.ProvenanceItem {
	item := abi.ProvenanceItem{Native: m.native}
	m.evidence(&item.Evidence, rank, b.settings.backdate)
	return item
}
