package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
)

// The parts of Honcho's answers that are read here (src/schemas/api.py). What is not read stays in raw.

// message is one message as Honcho keeps it.
type message struct {
	id, content, peer, session, workspace, createdAt string
	tokens                                           int64
	// event is the event_id as it was recorded, "" where the message is not one of ours; piece and pieces say which part of the event this is.
	event         string
	piece, pieces int
	raw           abi.Raw
}

// conclusion is a fact that Honcho derived, or was given. It has neither score nor version.
type conclusion struct {
	id, content, observer, observed, session, level, createdAt string
	raw                                                        abi.Raw
}

// page is the head of every list.
type page struct {
	total, pages int64
	// body is the whole answer, which its items are parts of.
	body []byte
}

// queue counts rows of the deriver's queue, not work units. A row that failed counts as completed.
type queue struct {
	total, completed, inProgress, pending int64
}

func (q queue) outstanding() int64 { return q.inProgress + q.pending }

// eachField calls read for every field of an object. Null has none.
//
//go:noinline
func eachField(d *jsontext.Decoder, read func(d *jsontext.Decoder, key string) error) error {
	if d.Next() == jsontext.Null {
		return d.Null()
	}
	return d.Obj(read)
}

// eachItem calls read for every element of a list. Null has none.
//
//go:noinline
func eachItem(d *jsontext.Decoder, read func(d *jsontext.Decoder) error) error {
	if d.Next() == jsontext.Null {
		return d.Null()
	}
	return d.Arr(read)
}

//go:noinline
func readText(d *jsontext.Decoder, into *string) (err error) {
	if d.Next() == jsontext.Null {
		return d.Null()
	}
	*into, err = d.Str()
	return err
}

//go:noinline
func readNumber(d *jsontext.Decoder, into *int64) (err error) {
	if d.Next() == jsontext.Null {
		return d.Null()
	}
	raw, err := d.Raw()
	if err == nil {
		*into, err = strconv.ParseInt(string(raw), 10, 64)
	}
	return err
}

// read reads a message. The item's bytes stay in use.
func (m *message) read(item jsontext.Raw) error {
	m.raw = abi.Raw(item)
	return eachField(jsontext.DecodeBytes(item), func(d *jsontext.Decoder, key string) error {
		switch key {
		case "id":
			return readText(d, &m.id)
		case "content":
			return readText(d, &m.content)
		case "peer_id":
			return readText(d, &m.peer)
		case "session_id":
			return readText(d, &m.session)
		case "workspace_id":
			return readText(d, &m.workspace)
		case "created_at":
			return readText(d, &m.createdAt)
		case "token_count":
			return readNumber(d, &m.tokens)
		case "metadata":
			return eachField(d, m.readMark)
		}
		return d.Skip()
	})
}

// readMark reads what record put into a message's metadata. Others may have written there, too: what is of another type is not ours.
func (m *message) readMark(d *jsontext.Decoder, key string) error {
	switch {
	case key == keyEvent && d.Next() == jsontext.String:
		text, err := d.Str()
		m.event = unlabel(text)
		return err
	case (key == keyPiece || key == keyPieces) && d.Next() == jsontext.Number:
		raw, err := d.Raw()
		n, notInt := strconv.Atoi(string(raw))
		if notInt != nil {
			n = -1
		}
		if key == keyPiece {
			m.piece = n
		} else {
			m.pieces = n
		}
		return err
	}
	return d.Skip()
}

// read reads a conclusion. The item's bytes stay in use.
func (x *conclusion) read(item jsontext.Raw) error {
	x.raw = abi.Raw(item)
	return eachField(jsontext.DecodeBytes(item), func(d *jsontext.Decoder, key string) error {
		switch key {
		case "id":
			return readText(d, &x.id)
		case "content":
			return readText(d, &x.content)
		case "observer_id":
			return readText(d, &x.observer)
		case "observed_id":
			return readText(d, &x.observed)
		case "session_id":
			return readText(d, &x.session)
		case "level":
			return readText(d, &x.level)
		case "created_at":
			return readText(d, &x.createdAt)
		}
		return d.Skip()
	})
}

// readList reads a bare list.
func readList(body []byte) ([]jsontext.Raw, error) { return readListIn(jsontext.DecodeBytes(body)) }

func readListIn(d *jsontext.Decoder) (items []jsontext.Raw, err error) {
	err = eachItem(d, func(d *jsontext.Decoder) error {
		item, err := d.Raw()
		items = append(items, item)
		return err
	})
	return items, err
}

// readPage reads a list with its head: {"items": [...], "total": n, "page": 1, "size": 50, "pages": k}.
func readPage(body []byte) (items []jsontext.Raw, head page, err error) {
	head.total, head.body = -1, body
	err = eachField(jsontext.DecodeBytes(body), func(d *jsontext.Decoder, key string) (err error) {
		switch key {
		case "items":
			var raw jsontext.Raw
			if raw, err = d.Raw(); err == nil {
				items, err = readList(raw)
			}
			return err
		case "total":
			return readNumber(d, &head.total)
		case "pages":
			return readNumber(d, &head.pages)
		}
		return d.Skip()
	})
	if err == nil && head.total < 0 {
		err = abi.NewError(abi.CodeBackend, "a list without its total")
	}
	return items, head, err
}

func readMessages(items []jsontext.Raw) ([]message, error) {
	found := make([]message, len(items))
	for i, item := range items {
		if err := found[i].read(item); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func readConclusions(items []jsontext.Raw) ([]conclusion, error) {
	found := make([]conclusion, len(items))
	for i, item := range items {
		if err := found[i].read(item); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// readIDs reads only the ids of items: of sessions, peers or conclusions. They do not refer to the items.
func readIDs(items []jsontext.Raw) ([]string, error) {
	ids := make([]string, len(items))
	for i, item := range items {
		err := eachField(jsontext.DecodeBytes(item), func(d *jsontext.Decoder, key string) error {
			if key == "id" {
				return readText(d, &ids[i])
			}
			return d.Skip()
		})
		if err != nil {
			return nil, err
		}
		ids[i] = strings.Clone(ids[i])
	}
	return ids, nil
}

func readQueue(body []byte) (q queue, err error) {
	fields := 0
	err = eachField(jsontext.DecodeBytes(body), func(d *jsontext.Decoder, key string) error {
		fields++
		switch key {
		case "total_work_units":
			return readNumber(d, &q.total)
		case "completed_work_units":
			return readNumber(d, &q.completed)
		case "in_progress_work_units":
			return readNumber(d, &q.inProgress)
		case "pending_work_units":
			return readNumber(d, &q.pending)
		}
		fields--
		return d.Skip()
	})
	if err == nil && fields < 4 {
		err = abi.NewError(abi.CodeBackend, "a queue status without its counts")
	}
	return q, err
}
