package main

import (
	"errors"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// The parts of Honcho's answers that are read here (src/schemas/api.py). The rest is kept in raw.

// message is one message as Honcho keeps it.
type message struct {
	id, content, peer, session, workspace, createdAt string
	// name is the speaker's name, if the message has one.
	name   string
	tokens int64
	// event is the recorded event_id, or "" if memhost did not write the message; piece and pieces say which part of
	// the event this is.
	event         string
	piece, pieces int64
	raw           abi.Raw
}

// conclusion is a fact that Honcho derived or was given. It has no score and no version.
type conclusion struct {
	id, content, observer, observed, session, level, createdAt string
	raw                                                        abi.Raw
}

// page is the head of every list.
type page struct {
	total, pages int64
	body         abi.Raw
}

// queue counts rows of the deriver's queue, not work units. A failed row counts as completed.
type queue struct {
	total, completed, inProgress, pending int64
}

func (q queue) outstanding() int64 { return q.inProgress + q.pending }

// readMessage reads a message. Others may have written into its metadata too, so values of unexpected types are
// ignored.
func readMessage(raw abi.Raw) (message, error) {
	m := message{raw: raw}
	var metadata abi.Raw
	var event string
	err := wire.Read(raw, "id", &m.id, "content", &m.content, "peer_id", &m.peer, "session_id", &m.session,
		"workspace_id", &m.workspace, "created_at", &m.createdAt, "token_count", &m.tokens, "metadata", &metadata)
	wire.Pick(metadata, keyEvent, &event, keyPiece, &m.piece, keyPieces, &m.pieces, keyName, &m.name)
	m.event = unlabel(event)
	return m, err
}

func readConclusion(raw abi.Raw) (conclusion, error) {
	x := conclusion{raw: raw}
	err := wire.Read(raw, "id", &x.id, "content", &x.content, "observer_id", &x.observer, "observed_id", &x.observed,
		"session_id", &x.session, "level", &x.level, "created_at", &x.createdAt)
	return x, err
}

// readID reads only the id of an item: of a session, peer or conclusion. It copies the id, so the answer's memory can
// be reused.
func readID(raw abi.Raw) (id string, err error) {
	err = wire.Read(raw, "id", &id)
	return strings.Clone(id), err
}

// readAll reads the items of a list, one by one.
func readAll[T any](items []abi.Raw, read func(abi.Raw) (T, error)) ([]T, error) {
	found := make([]T, len(items))
	for i, item := range items {
		var err error
		if found[i], err = read(item); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// readList reads a bare list. Null is an error: otherwise it would look like an empty result.
func readList[T any](body abi.Raw, read func(abi.Raw) (T, error)) ([]T, error) {
	if kind := wire.Kind(body); kind != wirejson.Array {
		return nil, errors.New("want a list, got " + kind.String())
	}
	return readAll(wire.Items(body), read)
}

// readPage reads a list with its head: {"items": [...], "total": n, "page": 1, "size": 50, "pages": k}.
func readPage(body abi.Raw) (items []abi.Raw, head page, err error) {
	head = page{total: -1, body: body}
	err = wire.Read(body, "items", &items, "total", &head.total, "pages", &head.pages)
	switch {
	case err != nil:
	case head.total < 0:
		err = errors.New("it has no total")
	case items == nil:
		err = errors.New("it has no items")
	}
	return items, head, err
}

func readQueue(body abi.Raw) (q queue, err error) {
	q = queue{-1, -1, -1, -1}
	err = wire.Read(body, "total_work_units", &q.total, "completed_work_units", &q.completed,
		"in_progress_work_units", &q.inProgress, "pending_work_units", &q.pending)
	if err == nil && min(q.total, q.completed, q.inProgress, q.pending) < 0 {
		err = errors.New("it has not all of its counts")
	}
	return q, err
}

// unreadable returns the error for an answer that is JSON but not what the route returns.
func unreadable(r request, body abi.Raw, what string, err error) *abi.Error {
	return sdk.Unusable(r.route, 200, body, "is no "+what+": "+err.Error())
}

// breach returns the error for an item of another scope.
func breach(route, what string, item abi.Raw) *abi.Error {
	e := abi.NewError(abi.CodeIsolationBreach, "Honcho answered "+route+" with "+what)
	e.Route, e.Native = route, sdk.Native(200, item)
	return e
}
