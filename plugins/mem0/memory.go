package main

import (
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
)

// memory is one item that mem0 returned, as far as this module reads it.
type memory struct {
	id, text        string
	user, run       string // the platform's list calls run_id session_id
	created, update string
	at              time.Time // created, as an instant
	score           *float64
	semantic        *float64 // the part of the score that is comparable between queries
	reranked        *float64 // a reranker's score: not a similarity
	replaced        bool
	metadata        abi.Raw
	// native is the unchanged item.
	native abi.Raw
}

// label returns the text under one of memhost's keys in the metadata, "" if there is none.
func (m *memory) label(key string) string { return wire.Text(wire.At(m.metadata, key)) }

func readMemory(native abi.Raw) *memory {
	m := &memory{native: native}
	var session, replacedBy string
	wire.Pick(native, "id", &m.id, "memory", &m.text, "user_id", &m.user, "run_id", &m.run, "session_id", &session,
		"metadata", &m.metadata, "created_at", &m.created, "updated_at", &m.update, "score", &m.score,
		"rerank_score", &m.reranked, "replaced_by", &replacedBy,
		"score_details", wire.Fields{"semantic_score", &m.semantic, "semantic", &m.semantic},
		"score_breakdown", wire.Fields{"semantic_score", &m.semantic, "semantic", &m.semantic})
	if m.run == "" {
		m.run = session
	}
	m.created, m.at = readTime(m.created)
	m.update, _ = readTime(m.update)
	m.replaced = replacedBy != ""
	return m
}

// readTime reads a time; "" for anything else: the self-hosted server stores any text as created_at.
func readTime(text string) (string, time.Time) {
	at, err := abi.ParseTime(text)
	if err != nil {
		return "", time.Time{}
	}
	return text, at
}

// rows sends a request whose answer is {"results": [item], "count"?}, and reads the items. It checks that each of them
// belongs to the scope. body is the whole answer.
//
// Errors: isolation_breach if an item belongs to another scope; backend if the answer cannot be used.
func (b *backend) rows(r request) (found []*memory, count int64, body abi.Raw, err error) {
	if body, err = b.send(r); err != nil {
		return nil, 0, nil, err
	}
	found, count, err = readRows(r.route, body)
	for _, m := range found {
		if err == nil {
			err = b.checkOwner(r.route, m)
		}
	}
	return found, count, body, err
}

// readRows is rows for an answer that is already there, without the check of the scope.
func readRows(route string, body abi.Raw) (found []*memory, count int64, err error) {
	var results []abi.Raw
	if err := read(route, body, "results", &results, "count", &count); err != nil {
		return nil, 0, err
	}
	if results == nil {
		return nil, 0, unusable(route, body, "it has no list of results")
	}
	found = make([]*memory, 0, len(results))
	for _, item := range results {
		switch wire.Kind(item) {
		case wirejson.Object:
			found = append(found, readMemory(item))
		case wirejson.Null:
		default:
			return nil, 0, unusable(route, body, "a result is not an object")
		}
	}
	return found, count, nil
}

// checkOwner reports whether an item belongs to the scope. The platform omits user_id from some records; run_id is on
// all.
//
// Errors: isolation_breach.
func (b *backend) checkOwner(route string, m *memory) error {
	if m.run == b.ids.run && (m.user == b.ids.user || m.user == "" && b.platform()) {
		return nil
	}
	e := abi.NewError(abi.CodeIsolationBreach, "mem0 answered route "+route+" with memory "+m.id+", which is not of "+
		"this scope")
	e.Route = route
	return e
}

// getMemory fetches a memory by its id. Nil means that there is none.
//
// Errors: isolation_breach if it belongs to another scope, because mem0's memory ids are global.
func (b *backend) getMemory(id string) (*memory, error) {
	route := b.route("memory")
	head, body, err := b.exchange(request{route: route, params: memoryParam(id)})
	switch {
	case err != nil:
		return nil, err
	case head.Empty || strings.TrimSpace(string(body)) == "null":
		return nil, nil
	case head.Status != 200:
		return nil, failure(route, head, body)
	}
	if err := read(route, body); err != nil {
		return nil, err
	}
	m := readMemory(body)
	return m, b.checkOwner(route, m)
}
