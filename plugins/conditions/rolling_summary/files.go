package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// What the scope's state holds in addition to the sessions (package nanobot):
//
//	memory    MEMORY.md with where it came from, as JSON
//	history   log; HISTORY.md, one JSON object per entry
//	settled   words that a person removed from MEMORY.md (settled.go)
const (
	memoryKey  = "memory"
	historyLog = "history"
)

// maxSources is the maximum number of events that MEMORY.md lists as its sources. With more, it lists none.
const maxSources = 256

// longTermFile is MEMORY.md.
type longTermFile struct {
	text    string
	updated string
	// events are the events whose consolidation changed the file; many is true if there were more than sourcesMost.
	events  []string
	many    bool
	version int64
}

// id identifies the content: the file has no other version.
func (f *longTermFile) id() string { return "memory@" + sdk.Digest256(f.text)[:8] }

func (f *longTermFile) members() []object.Member {
	return []object.Member{object.Optional("text", &f.text), object.Optional("updated_at", &f.updated),
		object.Optional("events", &f.events), object.Optional("many", &f.many)}
}

func (m *memory) longTerm() *longTermFile {
	f := new(longTermFile)
	f.version = m.Load(memoryKey, f.members()...)
	return f
}

// replace writes the file anew, as of a time, unless it says the same.
func (m *memory) replace(f *longTermFile, text, at string, events []string) {
	if text == f.text {
		return
	}
	f.text, f.updated = text, at
	f.events = append(f.events, events...)
	if f.many = f.many || len(f.events) > maxSources; f.many {
		f.events = nil
	}
	m.Store(memoryKey, f.version, f.members()...)
}

// entry is one paragraph of HISTORY.md.
type entry struct {
	text, at, session string
	events            []string
}

func (x *entry) members() []object.Member {
	return []object.Member{object.Optional("text", &x.text), object.Optional("at", &x.at),
		object.Optional("session", &x.session), object.Optional("events", &x.events)}
}

// remember adds an entry to HISTORY.md, without trailing blanks.
func (m *memory) remember(x entry) {
	x.text = strings.TrimRight(x.text, " \t\r\n")
	m.Append(historyLog, object.Encode(x.members()...))
}

// Counts counts the file and the log's entries.
func (m *memory) Counts() []abi.InventoryKind {
	long := abi.InventoryKind{Kind: "long_term"}
	if f := m.longTerm(); f.text != "" {
		long.Count, long.Digest = 1, sdk.Digest256(f.text)
	}
	entries, _ := m.Last(historyLog)
	return []abi.InventoryKind{long, {Kind: "history", Count: entries}}
}
