package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// nativeMutation changes or deletes memories of the scope:
//
//	update        {memory_id, text?, metadata?, expiration_date?}
//	delete        {memory_id}
//	update_batch  {memories: [{memory_id, text?, metadata?}]}   platform
//	delete_batch  {memory_ids: [id]}                            platform
//
// mem0's calls by memory id look at no scope, so every memory is fetched first and must be this scope's.
//
// Errors: invalid_argument for params; not_found for an id that is not of this scope; unsupported for another name, or a batch on the self-hosted server.
func nativeMutation(c *sdk.Call, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	b, err := open(c)
	if err != nil {
		return nil, err
	}
	p, err := readParams(r)
	if err != nil {
		return nil, err
	}
	batch := strings.HasSuffix(r.Name, "_batch")
	switch {
	case !slices.Contains([]string{"update", "delete", "update_batch", "delete_batch"}, r.Name):
		return nil, abi.NewError(abi.CodeUnsupported, "name: mem0 has no mutation "+r.Name).WithHint("there are update and delete, and on the platform update_batch and delete_batch")
	case batch && !b.platform():
		return nil, abi.NewError(abi.CodeUnsupported, "name: "+r.Name+" is the platform's").WithHint("send one update or delete for each memory")
	}
	if err := p.check(r.Name); err != nil {
		return nil, err
	}
	ids := make([]string, len(p.changes))
	for i, change := range p.changes {
		ids[i] = change.id
		if _, err := b.owned(change.id); err != nil {
			return nil, err
		}
	}
	call := request{route: r.Name, params: memoryParam(ids[0])}
	switch {
	case batch:
		call.params, call.body = nil, p.batchBody()
	case r.Name == "update":
		call.body = p.changes[0].body(false)
	}
	if b.platform() {
		call.route = "platform_" + call.route
	}
	if _, err := b.send(call); err != nil {
		return nil, err
	}
	return &abi.MutationReceipt{Status: "applied", NativeIDs: ids, Trace: &abi.Trace{BackendName: b.settings.config.Provider, NativeOperation: call.route, NativeIDs: ids}}, nil
}

// change is what is to become of one memory.
type change struct {
	id         string
	text       *string
	metadata   abi.Raw
	expiration abi.Raw // a date, or null to clear it
}

type params struct{ changes []change }

// batchMax is the most that the platform takes at once; each is fetched first, so fewer are offered.
const batchMax = 100

func readParams(r *abi.NativeMutation) (*params, error) {
	p := new(params)
	single := change{}
	var err error
	for _, key := range abi.SortedKeys(r.Params) {
		d := jsontext.DecodeBytes(r.Params[key])
		switch {
		case key == "memories" && r.Name == "update_batch":
			err = d.Arr(func(d *jsontext.Decoder) error {
				var item change
				err := d.Obj(item.read)
				p.changes = append(p.changes, item)
				return err
			})
		case key == "memory_ids" && r.Name == "delete_batch":
			err = d.Arr(func(d *jsontext.Decoder) error {
				id, err := d.Str()
				p.changes = append(p.changes, change{id: id})
				return err
			})
		case !strings.HasSuffix(r.Name, "_batch") && (key == "memory_id" || r.Name == "update"):
			err = single.read(d, key)
		default:
			return nil, abi.NewError(abi.CodeInvalidArgument, "params."+key+": unknown in "+r.Name)
		}
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "params."+key+": "+err.Error())
		}
	}
	if !strings.HasSuffix(r.Name, "_batch") {
		p.changes = append(p.changes, single)
	}
	return p, nil
}

func (c *change) read(d *jsontext.Decoder, key string) (err error) {
	switch key {
	case "memory_id":
		c.id, err = d.Str()
	case "text":
		var text string
		text, err = d.Str()
		text = strings.ReplaceAll(text, "\x00", "")
		c.text = &text
	case "metadata":
		var raw jsontext.Raw
		if raw, err = d.Raw(); err == nil {
			c.metadata = abi.Raw(withoutNUL(raw))
		}
	case "expiration_date":
		var raw jsontext.Raw
		raw, err = d.Raw()
		c.expiration = abi.Raw(raw)
	default:
		return abi.NewError(abi.CodeInvalidArgument, "unknown: "+key)
	}
	return err
}

// reserved are metadata keys that mean something to mem0, and memhost's own.
var reserved = []string{"data", "hash", "text_lemmatized", "created_at", "updated_at", "expiration_date", "role", "attributed_to", "memory_type"}

func (p *params) check(name string) error {
	wrong := func(what string) error { return abi.NewError(abi.CodeInvalidArgument, "params."+what) }
	if len(p.changes) == 0 || len(p.changes) > batchMax {
		return wrong("memories: want 1 to 100")
	}
	for _, c := range p.changes {
		update := strings.HasPrefix(name, "update")
		switch {
		case c.id == "":
			return wrong("memory_id: missing or empty")
		case c.text != nil && strings.TrimSpace(*c.text) == "":
			return wrong("text: blank; mem0 cannot embed it. Delete the memory instead")
		case update && c.text == nil && len(c.metadata) == 0 && len(c.expiration) == 0:
			return wrong("text: nothing to change: want text, metadata or expiration_date")
		}
		if len(c.metadata) == 0 {
			continue
		}
		taken := ""
		err := jsontext.DecodeBytes(c.metadata).Obj(func(d *jsontext.Decoder, key string) error {
			if slices.Contains(idKeys, key) || slices.Contains(reserved, key) || strings.HasPrefix(key, prefix) {
				taken = key
			}
			return d.Skip()
		})
		switch {
		case err != nil:
			return wrong("metadata: want an object")
		case taken != "":
			return wrong("metadata." + taken + ": mem0 or memhost gives this key a meaning")
		}
	}
	return nil
}

// body is the request for one memory; in a batch it names the memory.
func (c *change) body(named bool) []byte {
	var j jsontext.Encoder
	j.ObjStart()
	if named {
		j.FieldStart("memory_id")
		j.Str(c.id)
	}
	if c.text != nil {
		j.FieldStart("text")
		j.Str(*c.text)
	}
	for _, field := range []struct {
		key   string
		value abi.Raw
	}{{"metadata", c.metadata}, {"expiration_date", c.expiration}} {
		if len(field.value) > 0 {
			j.FieldStart(field.key)
			j.Raw(jsontext.Raw(field.value))
		}
	}
	j.ObjEnd()
	return j.Bytes()
}

func (p *params) batchBody() []byte {
	var j jsontext.Encoder
	j.ObjStart()
	j.FieldStart("memories")
	j.ArrStart()
	for i := range p.changes {
		j.Raw(p.changes[i].body(true))
	}
	j.ArrEnd()
	j.ObjEnd()
	return j.Bytes()
}
