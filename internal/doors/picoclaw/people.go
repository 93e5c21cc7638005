package picoclaw

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/outbox"
)

// person is a speaker as PicoClaw distinguishes people. The user of the command line is {cli, cron}.
type person struct {
	Channel  string `json:"channel"`
	SenderID string `json:"sender_id"`
}

// people keeps each memory for one person: the first one who speaks owns it, and everybody else has no memory. The
// owner of a scope is in a file of its own, so that a restarted hook knows it.
//
//	people/<digest of the scope>.json    {"channel":"telegram","sender_id":"42"}
//	people/<digest of the scope>.others  exists once another person was refused
type people struct {
	dir string
	log hclog.Logger

	mu     sync.Mutex
	owners map[abi.MemoryScope]person
	others map[abi.MemoryScope]bool
	logged map[person]bool
}

func newPeople(dir string, log hclog.Logger) *people {
	return &people{dir: dir, log: log, owners: map[abi.MemoryScope]person{}, others: map[abi.MemoryScope]bool{},
		logged: map[person]bool{}}
}

// admits reports whether a person may use a memory. Each refusal of a person is logged once.
func (p *people) admits(scope abi.MemoryScope, who person) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	owner, known := p.owners[scope]
	if !known {
		var err error
		if owner, err = p.claim(scope, who); err != nil {
			p.log.Warn("no memory for now: whose memory this is cannot be read from the disk, or written there",
				"error", err)
			return false
		}
		p.owners[scope] = owner
	}
	if owner == who {
		return true
	}
	if !p.others[scope] {
		p.others[scope] = true
		if err := os.WriteFile(p.file(scope, ".others"), nil, 0o600); err != nil {
			p.log.Warn("that a second person spoke could not be put on disk", "error", err)
		}
	}
	if !p.logged[who] {
		p.logged[who] = true
		p.log.Warn("no memory for this person: it belongs to somebody else", "channel", who.Channel, "sender_id",
			who.SenderID, "persona_id", scope.PersonaID, "owner_channel", owner.Channel, "owner_sender_id",
			owner.SenderID, "hint", "give each person a memory: --user '{channel}-{sender_id}'; or let all share this "+
				"one: --shared; or keep the others out: allow_from in PicoClaw's configuration. The owner is in "+
				p.file(scope, ".json"))
	}
	return false
}

// refuseUnnamed logs, once per channel, that speakers without a sender id have no memory: they may be any number of
// people.
func (p *people) refuseUnnamed(channel string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who := person{Channel: channel}
	if !p.logged[who] {
		p.logged[who] = true
		p.log.Warn("no memory for those whom PicoClaw gives no sender id: it cannot be told whether they are one person",
			"channel", channel, "hint", "say --shared if all who use this hook may share one memory")
	}
}

// alone reports whether only the owner has asked for a memory. A scheduled job has no person: its answer may go to a
// chat of a person who was refused.
func (p *people) alone(scope abi.MemoryScope) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.others[scope] {
		_, err := os.Stat(p.file(scope, ".others"))
		p.others[scope] = err == nil
	}
	return !p.others[scope]
}

// claim makes a person the owner of a scope without one, and returns the owner.
//
// Errors: of the disk.
func (p *people) claim(scope abi.MemoryScope, who person) (owner person, err error) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return owner, err
	}
	// A complete file is linked to its final name, so that only one of two hooks claims it, and a half-written file is
	// never read.
	temp, err := os.CreateTemp(p.dir, "claim-")
	if err != nil {
		return owner, err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(mustMarshal(who))
	if err = errors.Join(err, temp.Close()); err != nil {
		return owner, err
	}
	file := p.file(scope, ".json")
	if err := os.Link(temp.Name(), file); err == nil {
		return who, nil
	} else if !errors.Is(err, fs.ErrExist) {
		return owner, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return owner, err
	}
	return owner, json.Unmarshal(text, &owner)
}

func (p *people) file(scope abi.MemoryScope, ending string) string {
	return filepath.Join(p.dir, outbox.Digest(scope.RunID, scope.PersonaID, scope.AgentID)+ending)
}

// asyncPrefix is the prefix of the sender of a sub-agent's result.
const asyncPrefix = "async:"

// ofJob reports whether no person speaks although there is context: a scheduled job, or a sub-agent's result.
func (s speaker) ofJob() bool {
	return strings.HasPrefix(s.session, cronPrefix) || strings.HasPrefix(s.sender, asyncPrefix)
}

// allowed reports whether a speaker may use the memory of a scope.
func (h *Hook) allowed(scope abi.MemoryScope, s speaker) bool {
	switch {
	case h.o.Shared:
		return true
	case s.ofJob():
		return h.people.alone(scope)
	case s.sender == "":
		h.people.refuseUnnamed(s.channel)
		return false
	}
	return h.people.admits(scope, person{s.channel, s.sender})
}
