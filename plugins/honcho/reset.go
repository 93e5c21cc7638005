package main

import (
	"slices"

	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// resetState is the progress of this generation's reset, kept for the calls after one that is in progress; without it
// the work is only repeated.
type resetState struct {
	sessions, conclusions int64
	deleting              bool // the workspace's deletion was accepted
}

const resetKey = "reset"

func readReset(c *sdk.Call) resetState {
	value, _, err := c.Get(resetKey)
	if err != nil || len(value) == 0 {
		return resetState{}
	}
	var counts [3]int64
	for i, text := range strings.SplitN(string(value), " ", len(counts)) {
		counts[i], _ = strconv.ParseInt(text, 10, 64)
	}
	return resetState{counts[0], counts[1], counts[2] == 1}
}

func (r *resetState) write(c *sdk.Call) error {
	deleting := " 0"
	if r.deleting {
		deleting = " 1"
	}
	return c.Put(resetKey, []byte(sdk.Itoa(r.sessions)+" "+sdk.Itoa(r.conclusions)+deleting), sdk.AnyVersion)
}

// resetMS is the remaining time that is needed to continue deleting, in ms; with less, the answer is in_progress.
const resetMS = 2000

// resetScope removes the generation from Honcho. The deriver deletes after Honcho has answered, so the host repeats the
// call until nothing is left.
//
// A workspace can be deleted once its sessions are gone; before that Honcho answers 409. Whether it is gone is checked
// by its peers, which vanish with it, and not by the status of a second DELETE, which may be 404 or, while the API
// caches the workspace, 500. No request on the way creates anything: no get-or-create, no context.
//
// Source: Honcho DELETE /v3/workspaces/{ws} (src/crud/workspace.py), recorded as reset_*.
func resetScope(b *backend, _ *abi.Empty) (*abi.ResetReceipt, error) {
	at := readReset(b.Call)
	receipt := &abi.ResetReceipt{Status: abi.ResetInProgress, OldGeneration: b.Generation,
		NewGeneration: b.Generation + 1, Trace: b.trace("session_delete workspace_delete")}
	reset := b.resetWorkspace
	if b.shared() {
		reset = b.resetFixed
		receipt.Trace.NativeOperation = "session_delete conclusion_delete card_put"
	}
	if err := reset(&at, receipt); err != nil {
		return nil, err
	}
	return receipt, at.write(b.Call)
}

func (b *backend) resetWorkspace(at *resetState, receipt *abi.ResetReceipt) error {
	emptied, err := b.deleteSessions(b.user, at)
	if err != nil {
		return err
	}
	peers, err := b.count(request{route: "peers_list", body: []byte(`{"kind":"all"}`)})
	if err != nil {
		return err
	}
	receipt.Removed = map[string]*int64{"session": &at.sessions, "workspace": sdk.Ptr(int64(1)), "message": nil,
		"conclusion": nil, "peer": nil}
	if !emptied || at.deleting {
		if emptied && peers == 0 {
			receipt.Status = abi.ResetDone
		}
		return nil
	}
	head, body, err := b.exchange(request{route: "workspace_delete"})
	if err != nil {
		return err
	}
	switch head.Status {
	case 202, 200, 204:
		at.deleting = true
	case 409: // a session has reappeared: the next call deletes it
		receipt.Warnings = append(receipt.Warnings, "reset_again: a session was made while the workspace was to be "+
			"deleted")
	case 404, 500:
		if peers > 0 {
			return failure("workspace_delete", head, body)
		}
		if receipt.Status = abi.ResetDone; at.sessions == 0 {
			receipt.Removed["workspace"] = sdk.Ptr(int64(0)) // there was none
		}
	default:
		return failure("workspace_delete", head, body)
	}
	return nil
}

// deleteSessions deletes the scope's active sessions that the peer belongs to; emptied is false if the call's time was
// not enough.
func (b *backend) deleteSessions(peer string, at *resetState) (emptied bool, err error) {
	for {
		ids, _, err := b.sessions(peer, 1) // deleted sessions are not listed, so the first page is always the next
		if err != nil || len(ids) == 0 {
			return err == nil, err
		}
		deleted := 0
		for _, id := range ids {
			if b.Remaining() < resetMS {
				return false, nil
			}
			gone, err := b.remove(request{route: "session_delete", session: id})
			if err != nil {
				return false, err
			}
			if gone {
				at.sessions++
				deleted++
			}
		}
		if deleted == 0 {
			return false, nil // listed, but not found because of a cache; the next call checks again
		}
	}
}

// remove deletes one object; gone is false if it did not exist.
func (b *backend) remove(r request) (gone bool, err error) {
	head, body, err := b.exchange(r)
	switch {
	case err != nil:
		return false, err
	case head.Status == 404:
		return false, nil
	case head.Status < 200 || head.Status > 299:
		return false, failure(r.route, head, body)
	}
	return true, nil
}

// resetFixed removes what can be removed from a workspace that also holds other scopes: sessions, conclusions about and
// by the scope's peers, cards.
func (b *backend) resetFixed(at *resetState, receipt *abi.ResetReceipt) error {
	receipt.Removed = map[string]*int64{"session": &at.sessions, "conclusion": &at.conclusions, "message": nil}
	for _, peer := range b.allPeers() {
		if emptied, err := b.deleteSessions(peer, at); err != nil || !emptied {
			return err
		}
	}
	for _, peer := range b.allPeers() {
		for _, role := range []string{"observed_id", "observer_id"} {
			if emptied, err := b.deleteConclusions(role, peer, at); err != nil || !emptied {
				return err
			}
		}
	}
	left := []string{}
	for _, peer := range b.allPeers() {
		known, err := b.count(request{route: "peers_list", body: filters(wire.Object{"id", peer})})
		if err != nil {
			return err
		}
		if known == 0 {
			continue // a PUT of a card would create the peer
		}
		left = append(left, peer)
		if peer == b.agent || slices.Contains(b.people(), peer) {
			if _, err := b.send(request{route: "card_put", peer: peer, body: []byte(`{"peer_card":[]}`)}); err != nil {
				return err
			}
		}
		// Until the purge has run, deleted sessions are still listed, as inactive.
		waiting, err := b.count(request{route: "peer_sessions", peer: peer})
		if err != nil || waiting > 0 {
			return err
		}
	}
	receipt.Status = abi.ResetDone
	for _, peer := range left {
		receipt.Remains = append(receipt.Remains, "peer "+peer+": Honcho cannot delete peers; its card is empty and "+
			"its collection has no conclusions")
	}
	return nil
}

func (b *backend) deleteConclusions(role, peer string, at *resetState) (emptied bool, err error) {
	r := request{route: "conclusions_list", body: filters(wire.Object{role, peer})}
	for {
		ids, _, err := idsOf(b, r, 1, pageSize)
		if err != nil || len(ids) == 0 {
			return err == nil, err
		}
		for _, id := range ids {
			if b.Remaining() < resetMS {
				return false, nil
			}
			gone, err := b.remove(request{route: "conclusion_delete", conclusion: id})
			if err != nil {
				return false, err
			}
			if gone {
				at.conclusions++
			}
		}
	}
}
