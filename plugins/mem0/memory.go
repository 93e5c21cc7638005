package main

import (
	"errors"
	"time"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
)

// memory is one item that mem0 returned, as far as this module reads it.
type memory struct {
	id, text, role  string
	user, run       string // the platform's list says session_id for run_id
	created, update string
	at              time.Time // created, as an instant
	score           number
	semantic        string // a number as it stands in the answer: only the greatest of all is read
	reranked        number // a reranker's score: not a similarity
	replaced        bool
	// metadata is the object as it came: of the labels in it hardly more than one is asked for.
	metadata jsontext.Raw
	// native is the item itself; only provenance needs it, and reads it for that.
	native abi.Raw
}

// number is one that mem0 may have told.
type number struct {
	value float64
	told  bool
}

// label is the text in the metadata under a key of memhost's, "" where there is none.
func (m *memory) label(key string) string {
	if m.metadata == nil {
		return ""
	}
	d := jsontext.DecodeBytes(m.metadata)
	fields, err := d.ObjIter()
	for err == nil && fields.Next() {
		if fields.Name() == key && d.Next() == jsontext.String {
			text, _ := d.Str() // it has been read before
			return text
		}
		err = d.Skip()
	}
	return ""
}

// itemReader reads items. They are allocated several at a time.
type itemReader struct {
	whole bool // an item is kept as it came
	spare []memory
	// The last time that was read: items of one turn have the same.
	text string
	at   time.Time
}

// itemsAtOnce is how many of them have one allocation.
const itemsAtOnce = 16

// read reads an item. JSON null gives nil.
func (r *itemReader) read(d *jsontext.Decoder) (*memory, error) {
	if r.whole {
		return r.readWhole(d)
	}
	if d.Next() == jsontext.Null {
		return nil, d.Null()
	}
	if len(r.spare) == 0 {
		r.spare = make([]memory, itemsAtOnce)
	}
	m := &r.spare[0]
	r.spare = r.spare[1:]
	fields, err := d.ObjIter()
	if err != nil {
		return m, err
	}
	for fields.Next() {
		if err := r.readField(d, m, fields.Name()); err != nil {
			return m, err
		}
	}
	return m, fields.Err()
}

// readWhole is read that keeps the item as it came.
func (r *itemReader) readWhole(d *jsontext.Decoder) (*memory, error) {
	native, err := d.Raw()
	if err != nil {
		return nil, err
	}
	m, err := new(itemReader).read(jsontext.DecodeBytes(native))
	if m != nil {
		m.native = abi.Raw(native)
	}
	return m, err
}

func (r *itemReader) readField(d *jsontext.Decoder, m *memory, key string) (err error) {
	switch len(key) { // first: otherwise a name is compared with each of them
	case len("id"):
		if key == "id" {
			m.id, err = readText(d)
			return err
		}
	case len("role"):
		if key == "role" {
			m.role, err = readText(d)
			return err
		}
	case len("score"):
		if key == "score" {
			m.score, err = readNumber(d)
			return err
		}
	case len("memory"):
		switch key {
		case "memory":
			m.text, err = readText(d)
			return err
		case "run_id":
			return m.readRun(d)
		}
	case len("user_id"):
		if key == "user_id" {
			m.user, err = readText(d)
			return err
		}
	case len("metadata"):
		if key == "metadata" && d.Next() == jsontext.Object {
			m.metadata, err = d.Raw()
			return err
		}
	case len("created_at"):
		switch key {
		case "created_at":
			m.created, m.at, err = r.readTime(d)
			return err
		case "updated_at":
			m.update, _, err = r.readTime(d)
			return err
		case "session_id":
			return m.readRun(d)
		}
	case len("replaced_by"):
		if key == "replaced_by" {
			var by string
			by, err = readText(d)
			m.replaced = by != ""
			return err
		}
	case len("rerank_score"):
		if key == "rerank_score" {
			m.reranked, err = readNumber(d)
			return err
		}
	case len("score_details"):
		if key == "score_details" {
			return m.readDetails(d)
		}
	case len("score_breakdown"):
		if key == "score_breakdown" {
			return m.readDetails(d)
		}
	}
	return d.Skip()
}

// readRun reads the run's id; an empty one does not take the place of another.
func (m *memory) readRun(d *jsontext.Decoder) error {
	id, err := readText(d)
	if id != "" {
		m.run = id
	}
	return err
}

// readDetails looks for the semantic score in what a score is made of.
func (m *memory) readDetails(d *jsontext.Decoder) error {
	if d.Next() != jsontext.Object {
		return d.Skip()
	}
	details, err := d.ObjIter()
	if err != nil {
		return err
	}
	for details.Next() {
		if key := details.Name(); key == "semantic_score" || key == "semantic" {
			m.semantic, err = readNumeral(d)
		} else {
			err = d.Skip()
		}
		if err != nil {
			return err
		}
	}
	return details.Err()
}

// readTime is readTime of the package, and the instant.
func (r *itemReader) readTime(d *jsontext.Decoder) (string, time.Time, error) {
	text, err := readText(d)
	if text == "" {
		return "", time.Time{}, err
	}
	if text != r.text {
		at, wrong := abi.ParseTime(text)
		if wrong != nil {
			return "", time.Time{}, err
		}
		r.text, r.at = text, at
	}
	return text, r.at, err
}

// readTime is a time, or "" where mem0 has something else: the self-hosted server stores any text as created_at.
func readTime(d *jsontext.Decoder) (string, error) {
	text, _, err := new(itemReader).readTime(d)
	return text, err
}

// readResults reads {"results": [item], "count"?} and holds every item against the scope.
//
// Errors: isolation_breach where an item is another scope's; backend where the answer is none.
func (b *backend) readResults(route string, body []byte) (found []*memory, count int64, err error) {
	if found, count, err = readItems(route, body, b.Op == abi.OpProvenance); err != nil {
		return nil, 0, err
	}
	for _, m := range found {
		if err := b.mine(route, m); err != nil {
			return nil, 0, err
		}
	}
	return found, count, nil
}

// readItems is readResults for whosever items they are. whole: each is kept as it came.
func readItems(route string, body []byte, whole bool) (found []*memory, count int64, err error) {
	r := itemReader{whole: whole}
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
		items, err := d.ArrIter()
		if err != nil {
			return err
		}
		if found == nil {
			found = make([]*memory, 0, itemsAtOnce)
		}
		for items.Next() {
			m, err := r.read(d)
			if err != nil {
				return err
			}
			if m != nil {
				found = append(found, m)
			}
		}
		return items.Err()
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
	return foreign(route, m)
}

//go:noinline
func foreign(route string, m *memory) error {
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
	r := itemReader{whole: b.Op == abi.OpProvenance, spare: make([]memory, 1)}
	m, err := r.read(d)
	if err == nil {
		err = atEnd(d)
	}
	if err = unusable(route, body, err); err != nil || m == nil {
		return nil, err
	}
	return m, b.mine(route, m)
}

var errNoResults = errors.New("it has no results")
