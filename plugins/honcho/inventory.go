package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// maxListed is the maximum number of conclusions that an inventory lists; above it, there is a count but no digest.
const maxListed = 2000

// inventory counts what the scope holds. Messages can be listed only by session, so their digest covers each session's
// count and newest id. These change with every message, since messages can be neither edited nor deleted one by one.
func inventory(b *backend, _ *abi.Empty) (*abi.Inventory, error) {
	v := &abi.Inventory{Complete: true,
		Trace: b.trace("sessions_list messages_list conclusions_list peers_list card queue_status")}
	for _, count := range []func(*abi.Inventory) error{b.countMessages, b.countConclusions, b.countPeers, b.countCard} {
		if err := count(v); err != nil {
			return nil, err
		}
	}
	q, err := b.queueOf()
	v.Quiescent = q.outstanding() == 0
	return v, err
}

func (b *backend) countMessages(v *abi.Inventory) error {
	var sessions []string
	messages := int64(0)
	complete, err := b.sessionsOf(func(session string) (bool, error) {
		r := request{route: "messages_list", session: session, query: []abi.QueryParam{newestFirst}}
		newest, head, err := idsOf(b, r, 1, 1)
		messages += head.total
		sessions = append(sessions, session+" "+sdk.Itoa(head.total)+" "+strings.Join(newest, ""))
		return false, err
	})
	v.Complete = v.Complete && complete
	v.Kinds = append(v.Kinds, abi.InventoryKind{Kind: "session", Count: int64(len(sessions))},
		abi.InventoryKind{Kind: "message", Count: messages, Digest: digest(sessions)})
	return err
}

// countConclusions lists the conclusions about the scope's people, which are all that a retrieval reads.
func (b *backend) countConclusions(v *abi.Inventory) error {
	r := request{route: "conclusions_list", body: filters(b.byPeople())}
	var all []string
	kind := abi.InventoryKind{Kind: "conclusion"}
	for number := int64(1); ; number++ {
		ids, head, err := idsOf(b, r, number, pageSize)
		if err != nil {
			return err
		}
		all, kind.Count = append(all, ids...), head.total
		if number >= head.pages || len(ids) == 0 || len(all) >= maxListed {
			break
		}
	}
	if complete := int64(len(all)) == kind.Count; complete {
		kind.Digest = digest(all)
	} else {
		v.Complete = false
	}
	v.Kinds = append(v.Kinds, kind)
	return nil
}

func (b *backend) countPeers(v *abi.Inventory) error {
	if b.shared() {
		return nil // they belong to the workspace, and are created once
	}
	peers, err := b.count(request{route: "peers_list"})
	v.Kinds = append(v.Kinds, abi.InventoryKind{Kind: "peer", Count: peers})
	return err
}

func (b *backend) countCard(v *abi.Inventory) error {
	lines, err := b.card()
	v.Kinds = append(v.Kinds, abi.InventoryKind{Kind: "card line", Count: int64(len(lines)), Digest: digest(lines)})
	return err
}

// card returns the user's card; nil if there is no such peer.
func (b *backend) card() (lines []string, err error) {
	r := request{route: "card", peer: b.user}
	answer, err := b.send(r)
	if err != nil || answer.empty {
		return nil, err
	}
	if err := wire.Read(answer.body, "peer_card", &lines); err != nil {
		return nil, unreadable(r, answer.body, "card", err)
	}
	return lines, nil
}

// digest returns the SHA-256 over sorted texts, each preceded by its length.
func digest(texts []string) string {
	slices.Sort(texts)
	var d sdk.Digest
	for _, text := range texts {
		d.Add(sdk.Itoa(len(text)) + ":" + text)
	}
	return d.Hex()
}
