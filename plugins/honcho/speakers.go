package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// How a scope distinguishes several named users: the names are those of messages with the role user.
const (
	speakersPeers = "peers" // each name is a peer, Honcho's own way
	speakersNames = "names" // all of them are the user's peer, and the name is written before the text
	speakersOff   = "off"   // all of them are the user's peer
)

const (
	// keySpeakers is set to speakersPeers in a scope whose named speakers have peers. A scope that is older than the
	// option does not have this key, and keeps the one peer that has its memory.
	keySpeakers = "speakers"
	// speakerKeys is the prefix of the keys of a scope's speakers: the peer's id follows, the value is the name.
	speakerKeys = "speaker/"
	// speakerPeers is the prefix of their peers' ids.
	speakerPeers = "speaker-"
	// maxSpeakers is the maximum number of speakers that a retrieval includes, one call each: the first ones by their
	// peers' ids.
	maxSpeakers = 10
)

const (
	warnSpeakerLost = abi.WarnSpeakerLost + ": the messages have names, and speakers is off: Honcho takes all of " +
		"them for the user's"
	warnMoreSpeakers = "speakers_unread: the scope has more named speakers than one retrieval asks for"
	warnChatSpeakers = "speakers_unread: read: chat asks about the user, not about the scope's named speakers"
)

// speaker is a named person with a peer.
type speaker struct{ peer, name string }

// loadSpeakers reads how this scope distinguishes people, and who has spoken. It reads peers even if the option was
// changed later.
func (b *backend) loadSpeakers() error {
	b.speakerMode = b.speakers
	if b.Op == abi.OpHealth { // outside a scope
		return nil
	}
	mode, _, err := b.Get(keySpeakers)
	if err != nil {
		return err
	}
	if string(mode) != speakersPeers {
		if b.speakerMode == speakersPeers {
			b.speakerMode = speakersNames
		}
		return nil
	}
	return b.Each(abi.StateListRequest{Prefix: speakerKeys, Values: true}, func(item sdk.Item) error {
		b.scopeSpeakers = append(b.scopeSpeakers, speaker{strings.TrimPrefix(item.Key, speakerKeys), string(item.Value)})
		return nil
	})
}

// speakerPeer returns the id of a named person's peer.
func (n *native) speakerPeer(name string) string {
	if n.parts != nil { // the workspace holds other scopes
		return speakerPeers + sdk.NativeID(joinedRules, append([]string{name}, n.parts...)...)
	}
	return speakerPeers + sdk.NativeID(singleRules, name)
}

// people returns the peers of the people in this scope: the user and the named speakers.
func (b *backend) people() []string {
	list := []string{b.user}
	for _, s := range b.scopeSpeakers {
		list = append(list, s.peer)
	}
	return list
}

// nameOf returns the name of a speaker's peer, "" for any other peer.
func (b *backend) nameOf(peer string) string {
	for _, s := range b.scopeSpeakers {
		if s.peer == peer {
			return s.name
		}
	}
	return ""
}

// byPeople filters conclusions by whom they are about: each of the scope's people. more are further conditions.
func (b *backend) byPeople(more ...any) wire.Object {
	if len(b.scopeSpeakers) == 0 {
		return b.about(more...)
	}
	anyOf := wire.Object{"in", b.people()}
	return append(wire.Object{"observer_id", anyOf, "observed_id", anyOf}, more...)
}

// ofPeople reports whether a conclusion is about a person of the scope.
func (b *backend) ofPeople(x *conclusion) bool {
	return x.observer == x.observed && slices.Contains(b.people(), x.observed)
}

// meet creates peers for people who speak for the first time.
func (b *backend) meet(e *abi.MemoryEvent) error {
	if b.speakerMode != speakersPeers {
		return nil
	}
	for i := range e.Messages {
		m := &e.Messages[i]
		if m.Role != abi.RoleUser || !sdk.Named(m) {
			continue
		}
		peer := b.speakerPeer(m.Name)
		if b.nameOf(peer) != "" {
			continue
		}
		b.scopeSpeakers = append(b.scopeSpeakers, speaker{peer, m.Name})
		if _, err := b.send(request{route: "peer", body: b.peerBody(peer)}); err != nil {
			return err
		}
		if err := b.Put(speakerKeys+peer, []byte(m.Name), sdk.AnyVersion); err != nil {
			return err
		}
	}
	return nil
}

// meetAgain records the speakers that Honcho already has, for a new data folder.
func (b *backend) meetAgain() error {
	if b.shared() {
		return nil // their ids do not distinguish them from other scopes' speakers
	}
	for number := int64(1); ; number++ {
		peers, head, err := pageOf(b, request{route: "peers_list"}, number, pageSize, readSpeaker)
		if err != nil {
			return err
		}
		for _, s := range peers {
			if s.name != "" && s.peer == b.speakerPeer(s.name) {
				if err := b.Put(speakerKeys+s.peer, []byte(s.name), sdk.AnyVersion); err != nil {
					return err
				}
			}
		}
		if number >= head.pages || len(peers) == 0 {
			return nil
		}
	}
}

func readSpeaker(raw abi.Raw) (s speaker, err error) {
	err = wire.Read(raw, "id", &s.peer)
	wire.Pick(wire.At(raw, "metadata"), keyName, &s.name)
	return s, err
}

// readSpeakers requests Honcho's representation of each named speaker, one call each.
func (q *retrieval) readSpeakers() error {
	speakers := q.scopeSpeakers
	switch {
	case len(speakers) > 0 && q.read == readChat:
		q.result.Trace.Warnings = append(q.result.Trace.Warnings, warnChatSpeakers)
		return nil
	case q.read != readContext || q.limitToSession:
		return nil
	case len(speakers) > maxSpeakers:
		speakers = speakers[:maxSpeakers]
		q.result.Trace.Warnings = append(q.result.Trace.Warnings, warnMoreSpeakers)
	}
	for _, s := range speakers {
		if err := q.ask(request{route: "peer_context", peer: s.peer, query: q.selection(nil)}); err != nil {
			return err
		}
	}
	return nil
}
