package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/internal/text/conversations"
	"github.com/memhost/memhost/internal/text/convert"
)

// chatsBuilder reads the user's own conversations, as `memhost record` accepts them, and probes written by hand. It
// holds them in memory.
var chatsBuilder = &Builder{
	Name: "chats", What: "one's own conversations (files, exports, logs), and probes written by hand",
	Sources: []string{"conversation.jsonl", "probes.jsonl"}, Timestamps: "source",
	Options: map[string]string{
		"user":  "whose memory it is, for lines that name nobody",
		"start": "RFC 3339: when a conversation began, for messages without a time",
	},
	Defaults: map[string]string{"user": "user", "start": ""},
	build:    buildChats,
}

type chat struct {
	events   []*pack.Event
	sessions map[string]int
	probes   []*pack.Probe
}

func buildChats(b *builder) (map[string]json.RawMessage, error) {
	o := convert.Options{RunID: "pack", UserID: b.options["user"], SessionID: "session"}
	if start := b.options["start"]; start != "" {
		var err error
		if o.Start, err = abi.ParseTime(start); err != nil {
			return nil, wrong("option start: %s", abi.AsError(err).Message)
		}
	}
	chats, order, err := b.readChats(o)
	if err != nil {
		return nil, err
	}
	if err := b.readProbes(chats); err != nil {
		return nil, err
	}
	for _, persona := range order {
		c := chats[persona]
		b.Persona(persona, persona)
		slices.SortStableFunc(c.events, func(a, b *pack.Event) int { return a.SessionIndex - b.SessionIndex })
		for _, e := range c.events {
			if err := b.Event(e); err != nil {
				return nil, err
			}
		}
		for _, p := range c.probes {
			if p.AfterSession == 0 {
				p.AfterSession = len(c.sessions)
			}
		}
		inOrder(c.probes)
		for _, p := range c.probes {
			if err := b.Probe(p); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// readChats reads the conversations by person. The persons are in order of first appearance.
func (b *builder) readChats(o convert.Options) (map[string]*chat, []string, error) {
	reader, closing, err := b.openChats(o)
	if err != nil {
		return nil, nil, err
	}
	defer closing()
	chats, order := map[string]*chat{}, []string{}
	for {
		item, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, wrong("%s: %v", filepath.Base(b.sources[0]), err)
		}
		e := item.Event
		c := chats[e.UserID]
		if c == nil {
			c = &chat{sessions: map[string]int{}}
			chats[e.UserID], order = c, append(order, e.UserID)
		}
		session, known := c.sessions[e.SessionID]
		if !known {
			session = len(c.sessions) + 1
			c.sessions[e.SessionID] = session
		}
		c.events = append(c.events, &pack.Event{SessionIndex: session, EventID: e.EventID, AgentID: e.AgentID,
			SessionID: e.SessionID, TurnID: e.TurnID,
			Timestamp: e.Timestamp, Messages: e.Messages, Scenario: e.Scenario, Context: e.Context,
			Attribute: e.Attribute, Metadata: e.Metadata})
	}
	if len(order) == 0 {
		return nil, nil, wrong("%s: want at least one event or conversation; found none", filepath.Base(b.sources[0]))
	}
	return chats, order, nil
}

// openChats opens the conversations: a file that `memhost record` accepts, or an export or logs in a known format.
func (b *builder) openChats(o convert.Options) (reader interface{ Next() (convert.Item, error) }, closing func(), err error) {
	paths := b.sources[:1]
	source, err := conversations.Detect(paths)
	if err != nil {
		return nil, nil, err
	}
	if source != "" {
		r, err := conversations.Open(source, paths, conversations.Options{Options: o})
		if err != nil {
			return nil, nil, err
		}
		return r, func() { _ = r.Close() }, nil
	}
	if info, err := os.Stat(b.sources[0]); err == nil && info.IsDir() {
		return nil, nil, wrong("%s: is a folder in which no conversations were recognised", b.sources[0])
	}
	in, err := b.open(0)
	if err != nil {
		return nil, nil, err
	}
	r, err := convert.NewReader(in, o)
	if err != nil {
		_ = in.Close()
		return nil, nil, err
	}
	return r, func() { _ = in.Close() }, nil
}

// readProbes reads lines of pack.Probe. A probe without after_session is asked at the end; one without persona_id
// belongs to the only person.
func (b *builder) readProbes(chats map[string]*chat) error {
	in, err := b.open(1)
	if err != nil {
		return err
	}
	defer in.Close()
	name, d := filepath.Base(b.sources[1]), json.NewDecoder(in)
	d.DisallowUnknownFields()
	for n := 1; ; n++ {
		p := new(pack.Probe)
		err := d.Decode(p)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return wrong("%s, probe %d: want {query, gold, ...} as docs/eval.md describes; found %s", name, n, pack.Mismatch(err))
		}
		if p.PersonaID == "" && len(chats) == 1 {
			p.PersonaID = abi.SortedKeys(chats)[0]
		}
		c := chats[p.PersonaID]
		if c == nil {
			return wrong("%s, probe %d: persona_id %q is not one of the conversations'", name, n, p.PersonaID)
		}
		if p.ProbeID == "" {
			p.ProbeID = fmt.Sprintf("probe-%d", n)
		}
		if p.Kind == "" {
			p.Kind = "question"
		}
		c.probes = append(c.probes, p)
	}
}
