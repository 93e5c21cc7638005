package main

import (
	"strings"

	"github.com/go-faster/jx"

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
	err = jx.DecodeBytes(data).Obj(func(d *jx.Decoder, key string) (err error) {
		switch key {
		case "text":
			m.text, err = d.Str()
		case "updated_at":
			m.updated, err = d.Str()
		case "events":
			m.events, err = stringList(d)
		case "many":
			m.many, err = d.Bool()
		default:
			err = d.Skip()
		}
		return err
	})
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
	var e jx.Encoder
	e.ObjStart()
	e.FieldStart("text")
	e.Str(m.text)
	e.FieldStart("updated_at")
	e.Str(m.updated)
	e.FieldStart("events")
	nanobot.WriteList(&e, m.events)
	e.FieldStart("many")
	e.Bool(m.many)
	e.ObjEnd()
	return c.Put(memoryKey, e.Bytes(), m.version)
}

// entry is one paragraph of HISTORY.md.
type entry struct {
	text, at, session string
	events            []string
}

// appendHistory adds an entry, without blanks at its end.
func appendHistory(c *sdk.Call, x entry) error {
	var e jx.Encoder
	e.ObjStart()
	e.FieldStart("text")
	e.Str(strings.TrimRight(x.text, " \t\r\n"))
	e.FieldStart("at")
	e.Str(c.Now)
	e.FieldStart("session")
	e.Str(x.session)
	e.FieldStart("events")
	nanobot.WriteList(&e, x.events)
	e.ObjEnd()
	_, err := c.Append(historyLog, e.Bytes())
	return err
}

func decodeEntry(data []byte) (x entry, err error) {
	err = jx.DecodeBytes(data).Obj(func(d *jx.Decoder, key string) (err error) {
		switch key {
		case "text":
			x.text, err = d.Str()
		case "at":
			x.at, err = d.Str()
		case "session":
			x.session, err = d.Str()
		case "events":
			x.events, err = stringList(d)
		default:
			err = d.Skip()
		}
		return err
	})
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

func stringList(d *jx.Decoder) (list []string, err error) {
	err = d.Arr(func(d *jx.Decoder) error {
		text, err := d.Str()
		list = append(list, text)
		return err
	})
	return list, err
}

// eventsOf names the events of messages, each once, in order.
func eventsOf(messages []nanobot.Message) []string {
	var ids []string
	for i := range messages {
		if id := messages[i].EventID; id != "" && (len(ids) == 0 || ids[len(ids)-1] != id) {
			ids = append(ids, id)
		}
	}
	return ids
}
