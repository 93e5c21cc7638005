package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
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
// Errors: invalid_argument for params; not_found for an id that is not of this scope; unsupported for another name, or
// a batch on the self-hosted server.
func nativeMutation(b *backend, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	batch := strings.HasSuffix(r.Name, "_batch")
	switch {
	case !slices.Contains([]string{"update", "delete", "update_batch", "delete_batch"}, r.Name):
		return nil, abi.NewError(abi.CodeUnsupported, "name: mem0 has no mutation "+r.Name).
			WithHint("there are update and delete, and on the platform update_batch and delete_batch")
	case batch && !b.platform():
		return nil, abi.NewError(abi.CodeUnsupported, "name: "+r.Name+" is the platform's").
			WithHint("send one update or delete for each memory")
	}
	changes, err := readChanges(r)
	if err != nil {
		return nil, err
	}
	ids, bodies := make([]string, len(changes)), make([]wire.Object, len(changes))
	for i, c := range changes {
		if _, err := b.ownMemory(c.id); err != nil {
			return nil, err
		}
		ids[i], bodies[i] = c.id, c.body(batch)
	}
	call := request{route: b.route(r.Name)}
	switch {
	case batch:
		call.body = wire.Object{"memories", bodies}.JSON()
	case r.Name == "update":
		call.params, call.body = memoryParam(ids[0]), bodies[0].JSON()
	default:
		call.params = memoryParam(ids[0])
	}
	if _, err := b.send(call); err != nil {
		return nil, err
	}
	return &abi.MutationReceipt{Status: "applied", NativeIDs: ids,
		Trace: &abi.Trace{BackendName: b.config.Provider, NativeOperation: call.route, NativeIDs: ids}}, nil
}

// change is the change of one memory.
type change struct {
	id         string
	text       *string
	metadata   abi.Raw
	expiration abi.Raw // a date, or null to clear it
}

// batchMax is the maximum batch. The platform accepts more, but each memory is fetched first.
const batchMax = 100

func wrong(what string) error { return abi.NewError(abi.CodeInvalidArgument, "params."+what) }

// readChanges reads the parameters of a mutation: those of one memory, or a list.
func readChanges(r *abi.NativeMutation) ([]change, error) {
	params := abi.Raw(wire.FromMap(r.Params).JSON())
	list, known := []abi.Raw{params}, []string{"memory_id", "text", "metadata", "expiration_date"}
	switch r.Name {
	case "delete":
		known = known[:1]
	case "update_batch", "delete_batch":
		name := map[string]string{"update_batch": "memories", "delete_batch": "memory_ids"}[r.Name]
		list = nil
		if err := wire.Read(params, name, &list); err != nil {
			return nil, wrong(err.Error())
		}
		if err := rejectUnknown(params, name); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 || len(list) > batchMax {
		return nil, wrong("memories: want 1 to 100")
	}
	changes := make([]change, len(list))
	for i, item := range list {
		c := &changes[i]
		if r.Name == "delete_batch" {
			c.id = wire.Text(item)
		} else if err := c.read(item, known); err != nil {
			return nil, err
		}
		if err := c.check(r.Name); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

func (c *change) read(params abi.Raw, known []string) error {
	if err := rejectUnknown(params, known...); err != nil {
		return err
	}
	if err := wire.Read(params, "memory_id", &c.id, "text", &c.text, "metadata", &c.metadata); err != nil {
		return wrong(err.Error())
	}
	c.expiration = wire.Map(params)["expiration_date"] // which may be null
	if c.metadata = withoutNUL(c.metadata); c.text != nil {
		*c.text = withoutZero(*c.text)
	}
	return nil
}

// rejectUnknown rejects unknown members.
func rejectUnknown(object abi.Raw, known ...string) error {
	for _, m := range wire.Members(object) {
		if !slices.Contains(known, m.Name) {
			return wrong(m.Name + ": unknown")
		}
	}
	return nil
}

// reserved are metadata keys with a meaning in mem0, and memhost's own.
var reserved = []string{"data", "hash", "text_lemmatized", "created_at", "updated_at", "expiration_date", "role",
	"attributed_to", "memory_type"}

// check returns the problem of a change.
func (c *change) check(name string) error {
	switch {
	case c.id == "":
		return wrong("memory_id: missing or empty")
	case c.text != nil && strings.TrimSpace(*c.text) == "":
		return wrong("text: blank; mem0 cannot embed it. Delete the memory instead")
	case strings.HasPrefix(name, "update") && c.text == nil && len(c.metadata) == 0 && len(c.expiration) == 0:
		return wrong("text: nothing to change: want text, metadata or expiration_date")
	case len(c.metadata) > 0 && wire.Kind(c.metadata) != wirejson.Object:
		return wrong("metadata: want an object")
	}
	for _, m := range wire.Members(c.metadata) {
		if slices.Contains(idKeys, m.Name) || slices.Contains(reserved, m.Name) || strings.HasPrefix(m.Name, prefix) {
			return wrong("metadata." + m.Name + ": mem0 or memhost gives this key a meaning")
		}
	}
	return nil
}

// body returns the request for one memory; in a batch it includes the memory's id.
func (c *change) body(named bool) wire.Object {
	body := wire.Object{"memory_id", wire.If(named, c.id), "text", nil, "metadata", c.metadata,
		"expiration_date", c.expiration}
	if c.text != nil {
		body[3] = *c.text
	}
	return body
}
