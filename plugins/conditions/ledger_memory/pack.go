package main

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// The view holds an entry packed, since a retrieval reads hundreds: a byte for the form, each text after its length,
// the numbers, the sources after their number, and a checksum of 8 bytes over all of it. An entry whose first byte
// is a brace is one of an earlier version, in JSON.
const (
	packedForm  = 1
	packedCheck = 8
)

// texts returns the texts of an entry in the order in which they are packed.
func (e *entry) texts() [17]*string {
	return [...]*string{&e.EventID, &e.Lineage, &e.Type, &e.Subject, &e.Predicate, &e.Object, &e.Scope, &e.Topic,
		&e.Sensitivity, &e.ParentID, &e.Source, &e.Evidence,
		&e.CreatedAt, &e.UpdatedAt, &e.ForgottenAt, &e.CommitID, &e.ConversationID}
}

func (e *entry) pack() []byte {
	b := append(make([]byte, 0, 400+len(e.Object)+len(e.Evidence)), packedForm)
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	for _, s := range e.texts() {
		text(*s)
	}
	orphan := int64(0)
	if e.OrphanModify {
		orphan = 1
	}
	for _, n := range [...]int64{int64(e.Confidence), e.Revisions, e.Confirmations, e.Count, orphan,
		int64(len(e.SourceEvents))} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	for _, id := range e.SourceEvents {
		text(id)
	}
	return binary.LittleEndian.AppendUint64(b, checkOf(b))
}

// checkOf detects accidental changes. Deliberate changes are detected by the ledger itself: its ids and checksums are
// SHA-256.
func checkOf(b []byte) uint64 {
	const prime = 0x9E3779B97F4A7C15
	sum := uint64(len(b)) * prime
	for ; len(b) >= 8; b = b[8:] {
		sum = bits.RotateLeft64((sum^binary.LittleEndian.Uint64(b))*prime, 29)
	}
	for _, c := range b {
		sum = (sum ^ uint64(c)) * prime
	}
	return sum
}

var errPacked = errors.New("not what was packed")

// unpack reads an entry from its own copy. Texts that pointed into a page of many entries would make every collection
// search the page for its beginning, once for each text.
func unpack(data []byte) (*entry, error) {
	if len(data) > 0 && data[0] == '{' {
		return decodeEntry(append([]byte(nil), data...))
	}
	end := len(data) - packedCheck
	if end < 1 || data[0] != packedForm || binary.LittleEndian.Uint64(data[end:]) != checkOf(data[:end]) {
		return nil, errPacked
	}
	r := unpacking{left: string(data[1:end])}
	e := new(entry)
	for _, s := range e.texts() {
		*s = r.text()
	}
	orphan, sources := int64(0), int64(0)
	for _, n := range [...]*int64{(*int64)(&e.Confidence), &e.Revisions, &e.Confirmations, &e.Count, &orphan,
		&sources} {
		*n = r.number()
	}
	e.OrphanModify = orphan != 0
	if sources > 0 && sources <= maxSources {
		e.SourceEvents = make([]string, sources)
		for i := range e.SourceEvents {
			e.SourceEvents[i] = r.text()
		}
	}
	if r.short || r.left != "" {
		return nil, errPacked
	}
	return e, nil
}

// unpacking is the unread part of an entry; short is set if there was less than announced.
type unpacking struct {
	left  string
	short bool
}

func (r *unpacking) number() int64 {
	n := uint64(0)
	for shift := 0; len(r.left) > 0 && shift < 63; shift += 7 {
		c := r.left[0]
		r.left = r.left[1:]
		if n |= uint64(c&0x7F) << shift; c < 0x80 {
			return int64(n)
		}
	}
	r.short = true
	return 0
}

func (r *unpacking) text() string {
	n := r.number()
	if n > int64(len(r.left)) {
		r.short = true
		return ""
	}
	s := r.left[:n]
	r.left = r.left[n:]
	return s
}
