package main

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// What a scope's state holds:
//
//	messages          log; one entry per message, as JSON. Its number, from 1, is its native id: message#1. One that was
//	                  forgotten is {}
//	event/<event id>  which messages an event became, and a digest of it; event#<hash> for an id too long for a key
//	term/<term>       the newest postings of a term, after the number of messages that have it and of full blocks
//	block/<term>/<n>  a full block of postings, n in 8 hex digits, the oldest first
//	when/<time>/<n>   of recall: a message's number by its time, newest first
//	count             how many messages were recorded, how many of them were forgotten, and how many words the others have
//
// A posting says that a message has a term. It holds three varints of package binary: the difference between the
// message's number and that of the previous posting in the block, how often the term occurs in the message, and how
// many words the message has. So recording takes time in proportion to the message's terms, and a query reads only the
// postings of its own terms.
const (
	messageLog  = "messages"
	eventPrefix = "event/"
	termPrefix  = "term/"
	blockPrefix = "block/"
	countKey    = "count"
	// blockBytes is the size at which a block is full. A record writes up to this much for each of its terms.
	blockBytes = 1500
)

// collection is the value of the key count.
type collection struct {
	// messages were recorded in all; forgotten of them no longer exist.
	messages, forgotten, words, version int64
}

func (c *collection) members() []object.Member {
	return []object.Member{object.Optional("messages", &c.messages), object.Optional("forgotten", &c.forgotten),
		object.Optional("words", &c.words)}
}

// existing returns the number of existing messages.
func (c *collection) existing() int64 { return c.messages - c.forgotten }

func readCollection(s *state.State) (c collection) {
	c.version = s.Load(countKey, c.members()...)
	return c
}

// postings is the value of a term's key.
type postings struct {
	// with is the number of messages that contain the term, blocks the number of full blocks.
	with, blocks int64
	// last is the message of the newest posting in open, 0 if open is empty.
	last int64
	open []byte
}

// readPostings reads a term's key; a term without messages has no postings.
//
// Errors: unavailable (state_io).
func readPostings(s *state.State, term string) *postings {
	p := new(postings)
	data, version := s.Get(termPrefix + term)
	if version == 0 {
		return p
	}
	for _, to := range []*int64{&p.with, &p.blocks, &p.last} {
		n, size := binary.Uvarint(data)
		if size <= 0 {
			s.Fail(state.Unreadable(termPrefix + term))
			return p
		}
		*to, data = int64(n), data[size:]
	}
	p.open = append([]byte(nil), data...)
	return p
}

// add adds a posting. A full block moves to its own key.
func (p *postings) add(s *state.State, term string, message, times, words int64) {
	p.with++
	for _, n := range []int64{message - p.last, times, words} {
		p.open = binary.AppendUvarint(p.open, uint64(n))
	}
	p.last = message
	if len(p.open) >= blockBytes {
		n := strconv.FormatInt(p.blocks, 16)
		s.Put(blockPrefix+term+"/"+strings.Repeat("0", max(0, 8-len(n)))+n, p.open, 0)
		p.blocks++
		p.open, p.last = nil, 0
	}
}

func (p *postings) write(s *state.State, term string) {
	data := make([]byte, 0, len(p.open)+24)
	for _, n := range []int64{p.with, p.blocks, p.last} {
		data = binary.AppendUvarint(data, uint64(n))
	}
	s.Put(termPrefix+term, append(data, p.open...), sdk.AnyVersion)
}

// each calls f with the postings of a term, by message.
//
// Errors: unavailable (state_io).
func (p *postings) each(s *state.State, term string, f func(message, times, words int64)) {
	if p.blocks > 0 {
		for item := range s.Items(abi.StateListRequest{Prefix: blockPrefix + term + "/", Values: true}) {
			if !walk(item.Value, f) {
				s.Fail(state.Unreadable(item.Key))
			}
		}
	}
	if !walk(p.open, f) {
		s.Fail(state.Unreadable(termPrefix + term))
	}
}

// walk iterates over one block; false if it is damaged.
func walk(block []byte, f func(message, times, words int64)) bool {
	message := int64(0)
	for len(block) > 0 {
		var posting [3]int64
		for i := range posting {
			n, size := binary.Uvarint(block)
			if size <= 0 {
				return false
			}
			posting[i], block = int64(n), block[size:]
		}
		message += posting[0]
		f(message, posting[1], posting[2])
	}
	return true
}

// eventEntry is the value of an event's key: which messages the event became.
type eventEntry struct {
	digest string
	// Its messages have the numbers from first to last. It has no messages if last is smaller than first.
	first, last int64
}

func (x *eventEntry) members() []object.Member {
	return []object.Member{object.Always("digest", &x.digest), object.Always("first", &x.first),
		object.Always("last", &x.last)}
}

// nativeIDs returns the ids of the event's messages.
func (x *eventEntry) nativeIDs() (ids []string) {
	for n := x.first; n <= x.last; n++ {
		ids = append(ids, nativeID(n))
	}
	return ids
}

func nativeID(message int64) string { return "message#" + sdk.Itoa(message) }

// numberOf returns the number of the message with a native id, 0 if the id is invalid.
func numberOf(nativeID string) int64 {
	n, _ := strconv.ParseInt(strings.TrimPrefix(nativeID, "message#"), 10, 64)
	return n
}

// eventKey returns the key of an event. Both keys and event ids may have up to 512 bytes, so a long id is hashed.
func eventKey(id string) string {
	if len(id) > 500 {
		return "event#" + sdk.Digest256(id)
	}
	return eventPrefix + id
}
