package main

import (
	"errors"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
)

// memory is one item that mem0 returned, as far as this module reads it.
type memory struct {
	id, text, role  string
	user, run       string // the platform's list says session_id for run_id
	created, update string
	score, semantic *float64
	reranked        *float64 // a reranker's score: not a similarity
	replaced        bool
	// labels are the texts in the metadata that memhost put there, by key.
	labels []label
	// native is the item itself; only provenance needs it, and reads it for that.
	native abi.Raw
}

type label struct{ key, value string }

// label is the text in the metadata under a key of memhost's, "" where there is none.
func (m *memory) label(key string) string {
	for _, l := range m.labels {
		if l.key == key {
			return l.value
		}
	}
	return ""
}

// readMemory reads an item. JSON null gives nil.
func readMemory(d *jsontext.Decoder) (*memory, error) {
	if d.Next() == jsontext.Null {
		return nil, d.Null()
	}
	m := new(memory)
	return m, d.Obj(m.readField)
}

// readWhole is readMemory that keeps the item as it came.
func readWhole(d *jsontext.Decoder) (*memory, error) {
	native, err := d.Raw()
	if err != nil {
		return nil, err
	}
	m, err := readMemory(jsontext.DecodeBytes(native))
	if m != nil {
		m.native = abi.Raw(native)
	}
	return m, err
}

func (m *memory) readField(d *jsontext.Decoder, key string) (err error) {
	switch key {
	case "id":
		m.id, err = readText(d)
	case "memory":
		m.text, err = readText(d)
	case "role":
		m.role, err = readText(d)
	case "user_id":
		m.user, err = readText(d)
	case "run_id", "session_id":
		var id string
		if id, err = readText(d); id != "" {
			m.run = id
		}
	case "created_at":
		m.created, err = readTime(d)
	case "updated_at":
		m.update, err = readTime(d)
	case "score":
		m.score, err = readNumber(d)
	case "rerank_score":
		m.reranked, err = readNumber(d)
	case "score_details", "score_breakdown":
		err = eachIn(d, func(d *jsontext.Decoder, key string) (err error) {
			if key == "semantic_score" || key == "semantic" {
				m.semantic, err = readNumber(d)
				return err
			}
			return d.Skip()
		})
	case "replaced_by":
		var by string
		by, err = readText(d)
		m.replaced = by != ""
	case "metadata":
		if d.Next() == jsontext.Object {
			m.labels = make([]label, 0, 8) // in one allocation
			return d.Obj(m.readLabel)
		}
		err = d.Skip()
	default:
		err = d.Skip()
	}
	return err
}

func (m *memory) readLabel(d *jsontext.Decoder, key string) error {
	if !strings.HasPrefix(key, prefix) || d.Next() != jsontext.String {
		return d.Skip()
	}
	text, err := d.Str()
	m.labels = append(m.labels, label{key, text})
	return err
}

// readTime is a time, or "" where mem0 has something else: the self-hosted server stores any text as created_at.
func readTime(d *jsontext.Decoder) (string, error) {
	text, err := readText(d)
	if _, wrong := abi.ParseTime(text); wrong != nil {
		text = ""
	}
	return text, err
}

// readResults reads {"results": [item], "count"?} and holds every item against the scope.
//
// Errors: isolation_breach where an item is another scope's; backend where the answer is none.
func (b *backend) readResults(route string, body []byte) (found []*memory, count int64, err error) {
	read := readMemory
	if b.Op == abi.OpProvenance {
		read = readWhole
	}
	if found, count, err = readItemsBy(route, body, read); err != nil {
		return nil, 0, err
	}
	for _, m := range found {
		if err := b.mine(route, m); err != nil {
			return nil, 0, err
		}
	}
	return found, count, nil
}

func readItems(route string, body []byte) (found []*memory, count int64, err error) {
	return readItemsBy(route, body, readMemory)
}

func readItemsBy(route string, body []byte, read func(*jsontext.Decoder) (*memory, error)) (found []*memory, count int64, err error) {
	listed := false
	err = readObject(route, body, func(d *jsontext.Decoder, key string) error {
		switch {
		case key == "count" && d.Next() == jsontext.Number:
			count, err = d.Int64()
			return err
		case key != "results":
			return d.Skip()
		}
		listed = true
		return d.Arr(func(d *jsontext.Decoder) error {
			m, err := read(d)
			if err == nil && m != nil {
				found = append(found, m)
			}
			return err
		})
	})
	if err == nil && !listed {
		err = unusable(route, body, errNoResults)
	}
	return found, count, err
}

// mine tells whether an item is of the scope. The platform leaves user_id out of some records; run_id stands on all.
func (b *backend) mine(route string, m *memory) error {
	if m.run == b.ids.run && (m.user == b.ids.user || m.user == "" && b.platform()) {
		return nil
	}
	e := abi.NewError(abi.CodeIsolationBreach, "mem0 answered route "+route+" with memory "+m.id+", which is not of this scope")
	e.Route = route
	return e
}

// getMemory fetches one by its id. Nil means that there is none.
//
// Errors: isolation_breach where it is another scope's: memory ids are not scoped in mem0.
func (b *backend) getMemory(id string) (*memory, error) {
	route := "memory"
	if b.platform() {
		route = "platform_memory"
	}
	head, body, err := b.exchange(request{route: route, params: memoryParam(id)})
	switch {
	case err != nil:
		return nil, err
	case head.Empty:
		return nil, nil
	case head.Status != 200:
		return nil, failure(route, head, body)
	}
	d := jsontext.DecodeBytes(body)
	read := readMemory
	if b.Op == abi.OpProvenance {
		read = readWhole
	}
	m, err := read(d)
	if err == nil {
		err = atEnd(d)
	}
	if err = unusable(route, body, err); err != nil || m == nil {
		return nil, err
	}
	return m, b.mine(route, m)
}

var errNoResults = errors.New("it has no results")
