package main

import (
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// forgettingKey holds the sessions, separated by spaces, that a forget has deleted and that Honcho may not have purged
// yet. The host calls again until they are gone.
const forgettingKey = "forgetting"

// forget deletes sessions that contain only forgotten events, with their conclusions, and conclusions by id. Honcho
// cannot delete a single message, so a session that contains other events too is not changed, and the receipt names it.
//
// Out: in_progress until the deriver has purged the sessions: until then a search still finds their messages.
// Errors: Honcho's own, typed.
func forget(b *backend, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	out := &abi.ForgetReceipt{Status: abi.ForgetInProgress, DerivedMayRemain: []string{},
		Removed: map[string][]string{"session": {}, "conclusion": {}},
		Trace:   b.trace("session_delete conclusion_delete")}
	value, _, err := b.Get(forgettingKey)
	if err != nil {
		return nil, err
	}
	deleted := strings.Fields(string(value))
	out.Removed["session"] = append(out.Removed["session"], deleted...)
	if purged, err := b.purged(deleted); err != nil || !purged {
		return out, err
	}
	m, err := b.findTargets(r)
	if err != nil {
		return nil, err
	}
	for _, id := range r.NativeIDs {
		if slices.Contains(m.sessions, id) || slices.Contains(deleted, id) {
			continue
		}
		gone, err := b.deleteConclusion(id)
		if err != nil {
			return nil, err
		}
		if gone {
			out.Removed["conclusion"] = append(out.Removed["conclusion"], id)
		} else {
			m.unmatched = append(m.unmatched, id)
		}
	}
	for _, session := range m.sessions {
		if _, err := b.deleteSession(session); err != nil {
			return nil, err
		}
	}
	out.Removed["session"] = append(out.Removed["session"], m.sessions...)
	out.Trace.NativeIDs = append(out.Removed["session"], out.Removed["conclusion"]...)
	if len(m.sessions) > 0 {
		return out, b.Put(forgettingKey, []byte(strings.Join(out.Removed["session"], " ")), sdk.AnyVersion)
	}
	if r.SessionID != "" { // an earlier call may have deleted it without recording that
		native := b.session(r.SessionID)
		if purged, err := b.purged([]string{native, b.again(native)}); err != nil || !purged {
			return out, err
		}
	}
	out.Status = abi.ForgetDone
	m.report(r, out)
	if err := b.derivedLeft(out); err != nil {
		return nil, err
	}
	return out, b.Put(forgettingKey, nil, sdk.AnyVersion)
}

// forgetTargets is what a forget request covers in a scope.
type forgetTargets struct {
	// sessions can be deleted as a whole; mixed contain other events too.
	sessions, mixed []string
	// messages counts the request's messages in mixed sessions.
	messages int
	// unmatched are native ids that match nothing.
	unmatched []string
	// complete: all sessions of the scope were searched.
	complete bool
}

// findTargets searches the scope's sessions.
func (b *backend) findTargets(r *abi.ForgetRequest) (*forgetTargets, error) {
	m := &forgetTargets{}
	native := b.session(r.SessionID)
	complete, err := b.sessionsOf(func(session string) (bool, error) {
		if slices.Contains(r.NativeIDs, session) ||
			r.SessionID != "" && (session == native || session == b.again(native)) {
			m.sessions = append(m.sessions, session)
			return false, nil
		}
		if len(r.EventIDs) == 0 && r.From == "" {
			return false, nil
		}
		ours, others, err := b.countTargets(r, session)
		switch {
		case ours > 0 && others == 0:
			m.sessions = append(m.sessions, session)
		case ours > 0:
			m.mixed, m.messages = append(m.mixed, session), m.messages+ours
		}
		return false, err
	})
	m.complete = complete
	return m, err
}

// countTargets counts the messages of a session that a request by events or by time covers, and the others.
func (b *backend) countTargets(r *abi.ForgetRequest, session string) (ours, others int, err error) {
	for number := int64(1); ; number++ {
		list, head, err := pageOf(b, request{route: "messages_list", session: session}, number, pageSize, readMessage)
		if err != nil {
			return 0, 0, err
		}
		for i := range list {
			if slices.Contains(r.EventIDs, list[i].event) || sdk.Forgets(r, "", list[i].eventTime()) {
				ours++
			} else {
				others++
			}
		}
		b.Reuse(head.body)
		if number >= head.pages || len(list) == 0 {
			return ours, others, nil
		}
	}
}

// eventTime returns the time of a message's event, whose pieces are one microsecond apart; "" if it cannot be read.
func (m *message) eventTime() string {
	at, err := abi.ParseTime(m.createdAt)
	if err != nil {
		return ""
	}
	return at.Add(-time.Duration(m.piece) * time.Microsecond).Format(time.RFC3339Nano)
}

// report adds to the receipt what the request covers but Honcho cannot remove.
func (m *forgetTargets) report(r *abi.ForgetRequest, out *abi.ForgetReceipt) {
	if len(m.mixed) > 0 {
		out.Status = abi.ForgetPartial
		out.DerivedMayRemain = append(out.DerivedMayRemain, sdk.Itoa(m.messages)+" messages, and what was concluded "+
			"and summarised from them, in sessions that have other events too: Honcho deletes no single message. "+
			"Forget a conclusion or the whole session by its id: "+clip(strings.Join(m.mixed, ", "), 1000))
	}
	if !m.complete {
		out.Status = abi.ForgetPartial
		out.DerivedMayRemain = append(out.DerivedMayRemain, "sessions that were not looked through: the scope has "+
			"more than "+sdk.Itoa(maxSessions)+", or the time was over")
	}
	if len(m.unmatched) > 0 {
		out.Status = abi.ForgetPartial
		out.DerivedMayRemain = append(out.DerivedMayRemain, "what has these ids, unless it is gone already: it is no "+
			"session and no conclusion, and Honcho deletes no single message: "+clip(strings.Join(m.unmatched, ", "), 1000))
	}
}

// derivedLeft lists what Honcho derived from several sessions, if there is anything.
func (b *backend) derivedLeft(out *abi.ForgetReceipt) error {
	drawn, err := b.count(request{route: "conclusions_list", body: filters(b.byPeople("level",
		wire.Object{"in", []string{"deductive", "inductive", "contradiction"}}))})
	if err != nil {
		return err
	}
	if drawn > 0 {
		out.DerivedMayRemain = append(out.DerivedMayRemain, sdk.Itoa(drawn)+" conclusions that Honcho drew from "+
			"others: each can be forgotten by its id")
	}
	card, err := b.card()
	if len(card) > 0 {
		out.DerivedMayRemain = append(out.DerivedMayRemain, "the user's card, "+sdk.Itoa(len(card))+" lines")
	}
	return err
}

// purged reports whether nothing is left of deleted sessions.
func (b *backend) purged(sessions []string) (bool, error) {
	for _, session := range sessions {
		for _, r := range []request{{route: "messages_list", session: session},
			{route: "conclusions_list", body: filters(wire.Object{"session_id", session})}} {
			left, err := b.count(r)
			if err != nil || left > 0 {
				return false, err
			}
		}
	}
	return true, nil
}
