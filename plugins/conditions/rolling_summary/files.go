package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// What the scope's state holds beside the sessions (package nanobot):
//
//	memory    MEMORY.md with where it came from, as JSON
//	history   log; HISTORY.md, one JSON object an entry
const (
	memoryKey  = "memory"
	historyLog = "history"
)

// sourcesMost bounds the events that MEMORY.md names as its sources. When there were more, it names none.
const sourcesMost = 256

// memory is MEMORY.md.
type memory struct {
	text    string
	updated string
	// events are those whose consolidation changed the file; many is true when there were more than sourcesMost.
	events  []string
	many    bool
	version int64
}

// id names the content: the file has no other version.
func (m *memory) id() string { return "memory@" + sdk.Digest256(m.text)[:8] }

func readMemory(c *sdk.Call) (*memory, error) {
	m := new(memory)
	data, version, err := c.Get(memoryKey)
	if err != nil || version == 0 {
		return m, err
	}
	m.version = version
	err = nanobot.Decode(data, m.fields()...)
	if err != nil {
		return nil, abi.NewError(abi.CodeUnavailable, "the state's MEMORY.md is not what was stored there").WithReason("state_io")
	}
	return m, nil
}

// replace writes the file anew, unless it says the same.
func (m *memory) replace(c *sdk.Call, text string, events []string) error {
	if text == m.text {
		return nil
	}
	m.text, m.updated = text, c.Now
	m.events = append(m.events, events...)
	if m.many = m.many || len(m.events) > sourcesMost; m.many {
		m.events = nil
	}
	return c.Put(memoryKey, nanobot.Encode(m.fields()...), m.version)
}

func (m *memory) fields() []nanobot.Field {
	return []nanobot.Field{nanobot.Word("text", &m.text), nanobot.Word("updated_at", &m.updated), nanobot.List("events", &m.events), nanobot.Flag("many", &m.many)}
}

// entry is one paragraph of HISTORY.md.
type entry struct {
	text, at, session string
	events            []string
}

// appendHistory adds an entry, without blanks at its end.
func appendHistory(c *sdk.Call, x entry) error {
	x.text, x.at = strings.TrimRight(x.text, " \t\r\n"), c.Now
	_, err := c.Append(historyLog, nanobot.Encode(x.fields()...))
	return err
}

func (x *entry) fields() []nanobot.Field {
	return []nanobot.Field{nanobot.Word("text", &x.text), nanobot.Word("at", &x.at), nanobot.Word("session", &x.session), nanobot.List("events", &x.events)}
}

func decodeEntry(data []byte) (x entry, err error) {
	err = nanobot.Decode(data, x.fields()...)
	return x, err
}

// eachEntry walks HISTORY.md from its beginning. Entries that cannot be read are counted.
func eachEntry(c *sdk.Call, each func(seq int64, x entry)) (bad int64, err error) {
	for from := int64(1); ; {
		entries, _, err := c.Read(abi.StateReadRequest{Log: historyLog, From: from, Limit: 1000})
		if err != nil || len(entries) == 0 {
			return bad, err
		}
		for _, stored := range entries {
			from = stored.Seq + 1
			x, err := decodeEntry(stored.Data)
			if err != nil {
				bad++
				continue
			}
			each(stored.Seq, x)
		}
	}
}
