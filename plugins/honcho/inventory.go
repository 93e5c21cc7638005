package main

import (
	"slices"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// maxListed is how many conclusions an inventory lists; of more it has the count, and no digest.
const maxListed = 2000

// inventory counts what the scope holds. Messages can be listed by session only: their digest goes over sessions with their count and newest id, which
// changes with every message, since messages can neither be edited nor deleted one by one.
func inventory(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	n := s.native(c)
	v := &abi.Inventory{Trace: s.trace()}
	complete, err := s.countMessages(c, n, v)
	if err != nil {
		return nil, err
	}
	listed, err := s.listConclusions(c, n, v)
	if err != nil {
		return nil, err
	}
	if err := s.countPeers(c, n, v); err != nil {
		return nil, err
	}
	if err := s.countCard(c, n, v); err != nil {
		return nil, err
	}
	q, err := s.queueOf(c, n)
	v.Complete, v.Quiescent = complete && listed, q.outstanding() == 0
	return v, err
}

func (s *settings) countMessages(c *sdk.Call, n *native, v *abi.Inventory) (complete bool, err error) {
	var sessions []string
	messages := int64(0)
	complete, err = s.sessionsOf(c, n, func(session string) (bool, error) {
		newest, head, err := s.listIDs(c, request{route: "messages_list", workspace: n.workspace, session: session}, 1, 1, true)
		messages += head.total
		sessions = append(sessions, session+" "+sdk.Itoa(head.total)+" "+first(newest))
		return false, err
	})
	v.Kinds = append(v.Kinds, abi.InventoryKind{Kind: "session", Count: int64(len(sessions))},
		abi.InventoryKind{Kind: "message", Count: messages, Digest: digest(sessions)})
	return complete, err
}

// listConclusions lists those about and by the user, which is all that a retrieval reads.
func (s *settings) listConclusions(c *sdk.Call, n *native, v *abi.Inventory) (complete bool, err error) {
	body := filters(func(e *jsontext.Encoder) { field(e, "observed_id", n.user) })
	var all []string
	var total int64
	for number := int64(1); ; number++ {
		ids, head, err := s.listIDs(c, request{route: "conclusions_list", workspace: n.workspace, body: body}, number, pageSize, false)
		if err != nil {
			return false, err
		}
		all, total = append(all, ids...), head.total
		if number >= head.pages || len(ids) == 0 || len(all) >= maxListed {
			break
		}
	}
	kind := abi.InventoryKind{Kind: "conclusion", Count: total}
	if complete = int64(len(all)) == total; complete {
		kind.Digest = digest(all)
	}
	v.Kinds = append(v.Kinds, kind)
	return complete, nil
}

func (s *settings) countPeers(c *sdk.Call, n *native, v *abi.Inventory) error {
	if s.fixed != "" {
		return nil // they are the workspace's, and made once
	}
	peers, err := s.count(c, request{route: "peers_list", workspace: n.workspace})
	v.Kinds = append(v.Kinds, abi.InventoryKind{Kind: "peer", Count: peers})
	return err
}

func (s *settings) countCard(c *sdk.Call, n *native, v *abi.Inventory) error {
	answer, err := s.send(c, request{route: "card", workspace: n.workspace, peer: n.user})
	if err != nil {
		return err
	}
	var lines []string
	if !answer.empty {
		if lines, err = readCard(answer.body); err != nil {
			return unusable("card", answer.status, answer.body, "is no card: "+err.Error())
		}
	}
	v.Kinds = append(v.Kinds, abi.InventoryKind{Kind: "card line", Count: int64(len(lines)), Digest: digest(lines)})
	return nil
}

func readCard(body []byte) (lines []string, err error) {
	err = eachField(jsontext.DecodeBytes(body), func(d *jsontext.Decoder, key string) error {
		if key != "peer_card" {
			return d.Skip()
		}
		return eachItem(d, func(d *jsontext.Decoder) error {
			var line string
			err := readText(d, &line)
			lines = append(lines, line)
			return err
		})
	})
	return lines, err
}

// digest is the SHA-256 over sorted texts, each with its length before it.
func digest(texts []string) string {
	slices.Sort(texts)
	var d sdk.Digest
	for _, text := range texts {
		d.Add(sdk.Itoa(len(text)) + ":" + text)
	}
	return d.Hex()
}

func first(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}
