package main

import (
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// provenanceLimit is the default number of items in an answer.
const provenanceLimit = 50

// provenance reports where memory came from. For a fact: its interval, the episodes that asserted it, and the one that
// closed it. For an episode or a recorded event: the facts that it asserted and those that it closed. For a time range:
// the facts that become valid in it.
//
// Without Bolt an MCP server still returns a fact with the UUIDs of its episodes, and an episode's facts; the gateway
// returns everything except the episode that closed a fact, and time ranges.
//
// Errors: not_found if the group has nothing with that id, even if another group has; unsupported for what the surface
// cannot report.
func provenance(c *sdk.Call, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	v, err := openCall(c)
	if err != nil {
		return nil, err
	}
	limit, skip := r.Limit, int64(0)
	if limit <= 0 || limit > 1000 {
		limit = provenanceLimit
	}
	if r.Cursor != "" {
		skip, err = strconv.ParseInt(r.Cursor, 10, 64)
	}
	if err != nil || skip < 0 {
		return nil, abi.NewError(abi.CodeInvalidArgument, "cursor: not one of an earlier answer")
	}
	if r.NativeID != "" && !isUUID(r.NativeID) {
		return nil, abi.NewError(abi.CodeNotFound, "native_id: Graphiti's ids are UUIDs")
	}
	p, next := &origins{scopedCall: v, operation: "bolt"}, skip+limit
	switch {
	case !v.hasBolt:
		err = v.surface.provenance(p, r)
	case r.NativeID != "":
		err = p.byID(r.NativeID)
	case r.EventID != "":
		err = p.byEvent(r.EventID)
	default:
		err = p.byTime(r, limit+1, skip)
		skip = 0
	}
	if err != nil {
		return nil, err
	}
	return p.answer(limit, skip, next), nil
}

// origins collects the items of an answer.
type origins struct {
	*scopedCall
	operation string
	items     []abi.ProvenanceItem
	warnings  []string
}

// answer returns a page: limit items after skip. next is the cursor after it, which counts items.
func (p *origins) answer(limit, skip, next int64) *abi.Provenance {
	a := &abi.Provenance{Trace: p.trace(p.operation)}
	a.Trace.Warnings = p.warnings
	all := int64(len(p.items))
	begin := min(skip, all)
	end := min(begin+limit, all)
	a.Items = p.items[begin:end]
	if end < all {
		a.NextCursor = sdk.Itoa(next)
	}
	for i := range a.Items {
		a.Items[i].Evidence.Rank = int64(i + 1)
		a.Trace.NativeIDs = append(a.Trace.NativeIDs, a.Items[i].Evidence.NativeID)
	}
	return a
}

func (p *origins) absent(what string) error {
	return abi.NewError(abi.CodeNotFound, "native_id: the scope has "+what+" with this id")
}

func noEvent() error {
	return abi.NewError(abi.CodeNotFound, "event_id: no episode of the scope has this name").
		WithHint("it may be queued still: ask readiness")
}

func asFact(x *item) abi.Evidence { return x.evidence("fact") }

// addOne adds an object that is an item, if it belongs to the scope.
func (p *origins) addOne(route string, native []byte, evidence func(x *item) abi.Evidence) error {
	x, err := readItem(route, native)
	if err == nil && x.group == p.group {
		p.items = append(p.items, abi.ProvenanceItem{Native: native, Evidence: evidence(&x)})
	}
	return err
}

// addEach adds every object of a list that belongs to the scope.
func (p *origins) addEach(route, kind string, body []byte, evidence func(x *item) abi.Evidence) error {
	return answer(route, body, fields{{kind, func(d *wirejson.Decoder) error {
		return d.Arr(func(d *wirejson.Decoder) error {
			native, err := verbatim(d)
			if err != nil {
				return err
			}
			return p.addOne(route, native, evidence)
		})
	}}})
}

// Provenance by Neo4j.

func (p *origins) byID(uuid string) error {
	one := field{"facts", textList(uuid)}
	err := p.rows("bolt_facts", "fact", "", one)
	if err != nil {
		return err
	}
	if len(p.items) > 0 {
		err = p.rows("bolt_sources", "episode", "asserted by", one)
		if err != nil {
			return err
		}
		return p.rows("bolt_closed_by", "episode", "closed by", field{"fact", sdk.Text(uuid)})
	}
	mine, err := p.boltOwned("bolt_owner_episode", uuid)
	if err != nil {
		return err
	}
	if !mine {
		return p.absent("neither a fact nor an episode")
	}
	return p.byEpisode(uuid)
}

func (p *origins) byEpisode(uuid string) error {
	return p.rows("bolt_episode_facts", "fact", "", field{"episode", sdk.Text(uuid)})
}

func (p *origins) byEvent(id string) error {
	found, err := p.boltNamed([]string{id})
	if err != nil {
		return err
	}
	return p.ofEpisodes(found[id], p.byEpisode)
}

// ofEpisodes adds the facts of each episode of an event.
func (p *origins) ofEpisodes(n storedTurn, add func(uuid string) error) error {
	if n.copies == 0 {
		return noEvent()
	}
	for _, uuid := range n.uuids {
		err := add(uuid)
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *origins) byTime(r *abi.ProvenanceRequest, limit, skip int64) error {
	_, from, err := utc("from", r.From)
	if err != nil {
		return err
	}
	_, to, err := utc("to", r.To)
	if err != nil {
		return err
	}
	return p.rows("bolt_facts_between", "fact", "", field{"lo", sdk.Number(from)}, field{"hi", sdk.Number(to)},
		field{"skip", sdk.Number(skip)},
		field{"limit", sdk.Number(limit)})
}

// rows runs a statement and makes an item of every row: native is the row as an object.
func (p *origins) rows(route, kind, group string, params ...field) error {
	head, rows, err := p.Bolt(route, p.params(params...))
	if err != nil {
		return err
	}
	return sdk.EachRow(rows, func(row []byte) error {
		var native []field
		err := sdk.EachColumn(row, func(i int, d *wirejson.Decoder) error {
			value, err := verbatim(d)
			if i < len(head.Columns) {
				native = append(native, field{head.Columns[i], value})
			}
			return err
		})
		item := abi.ProvenanceItem{Native: object(native...)}
		if err == nil {
			item.Evidence, err = rowEvidence(kind, group, item.Native)
		}
		if err != nil {
			return unusable(route, err.Error(), row)
		}
		p.items = append(p.items, item)
		return nil
	})
}

// rowEvidence reads the columns of a statement about facts or episodes.
func rowEvidence(kind, group string, row abi.Raw) (abi.Evidence, error) {
	e := abi.Evidence{NativeType: kind, Group: group, TimeBasis: abi.TimeEvent}
	name, asserted := "", abi.Raw(nil)
	at := func(into *string) func(d *wirejson.Decoder) error {
		return func(d *wirejson.Decoder) error {
			ms, err := d.Int64()
			*into = stampMS(ms)
			return err
		}
	}
	err := fields{{kind, &e.NativeID}, {"text", &e.Text}, {"name", &name}, {"events", &e.SourceEventIDs},
		{"asserted", &asserted}, {"event_ms", at(&e.ValidAt)}, {"valid_ms", at(&e.ValidAt)},
		{"invalid_ms", at(&e.InvalidAt)},
		{"expired_ms", at(&e.ExpiredAt)}, {"created_ms", at(&e.CreatedAt)}}.read(wirejson.DecodeBytes(row))
	if name != "" {
		e.SourceEventIDs = []string{name}
	}
	if e.InvalidAt != "" || e.ExpiredAt != "" {
		e.Superseded = sdk.Ptr(true)
	}
	switch string(asserted) {
	case "true":
		e.Group = "asserted"
	case "false":
		e.Group = "closed"
	}
	return e, err
}
