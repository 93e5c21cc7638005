package main

import (
	"strconv"

	"github.com/go-faster/jx"

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
	total, number, pages int64
}

// queue counts rows of the deriver's queue, not work units. A row that failed counts as completed.
type queue struct {
	total, completed, inProgress, pending int64
}

func (q queue) outstanding() int64 { return q.inProgress + q.pending }

// eachField calls read for every field of an object. Null has none.
func eachField(d *jx.Decoder, read func(d *jx.Decoder, key string) error) error {
	if d.Next() == jx.Null {
		return d.Null()
	}
	return d.Obj(read)
}

// eachItem calls read for every element of a list. Null has none.
func eachItem(d *jx.Decoder, read func(d *jx.Decoder) error) error {
	if d.Next() == jx.Null {
		return d.Null()
	}
	return d.Arr(read)
}

func readText(d *jx.Decoder, into *string) (err error) {
	if d.Next() == jx.Null {
		return d.Null()
	}
	*into, err = d.Str()
	return err
}

func readNumber(d *jx.Decoder, into *int64) (err error) {
	if d.Next() == jx.Null {
		return d.Null()
	}
	*into, err = d.Int64()
	return err
}

func readMessage(d *jx.Decoder) (m message, err error) {
	raw, err := d.Raw()
	if err != nil {
		return m, err
	}
	m.raw = append(abi.Raw(nil), raw...)
	err = eachField(jx.DecodeBytes(m.raw), func(d *jx.Decoder, key string) error {
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
	return m, err
}

// readMark reads what record put into a message's metadata. Others may have written there, too: what is of another type is not ours.
func (m *message) readMark(d *jx.Decoder, key string) error {
	switch {
	case key == keyEvent && d.Next() == jx.String:
		text, err := d.Str()
		m.event = unlabel(text)
		return err
	case (key == keyPiece || key == keyPieces) && d.Next() == jx.Number:
		raw, err := d.Num()
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

func readConclusion(d *jx.Decoder) (x conclusion, err error) {
	raw, err := d.Raw()
	if err != nil {
		return x, err
	}
	x.raw = append(abi.Raw(nil), raw...)
	err = eachField(jx.DecodeBytes(x.raw), func(d *jx.Decoder, key string) error {
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
	return x, err
}

// readAll reads a bare list.
func readAll[T any](body []byte, read func(*jx.Decoder) (T, error)) (items []T, err error) {
	err = eachItem(jx.DecodeBytes(body), func(d *jx.Decoder) error {
		item, err := read(d)
		items = append(items, item)
		return err
	})
	return items, err
}

// readPage reads a list with its head: {"items": [...], "total": n, "page": 1, "size": 50, "pages": k}.
func readPage[T any](body []byte, read func(*jx.Decoder) (T, error)) (items []T, head page, err error) {
	head.total = -1
	err = eachField(jx.DecodeBytes(body), func(d *jx.Decoder, key string) error {
		switch key {
		case "items":
			return eachItem(d, func(d *jx.Decoder) error {
				item, err := read(d)
				items = append(items, item)
				return err
			})
		case "total":
			return readNumber(d, &head.total)
		case "page":
			return readNumber(d, &head.number)
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

// readID reads only the id of an item: of a session or a peer.
func readID(d *jx.Decoder) (id string, err error) {
	err = eachField(d, func(d *jx.Decoder, key string) error {
		if key == "id" {
			return readText(d, &id)
		}
		return d.Skip()
	})
	return id, err
}

func readQueue(body []byte) (q queue, err error) {
	fields := 0
	err = eachField(jx.DecodeBytes(body), func(d *jx.Decoder, key string) error {
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
