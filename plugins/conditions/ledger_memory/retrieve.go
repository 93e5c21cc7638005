package main

import (
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// route is the name in raw.calls of the slot's own state.
const route = "state"

// ceilingItems and ceilingBytes bound one retrieval if no budget does: the guest has 128 MiB.
const (
	ceilingItems = 5000
	ceilingBytes = 4 << 20
)

// ceilingMatches is the maximum number of results with order: query, which are kept sorted while the ledger is read.
const ceilingMatches = 500

// pageItems is how many entries are read at once.
const pageItems = 64

// retrieve returns the visible entries of the current branch, newest first, as many as fit the budget, regardless of
// the query. With order: query it returns those that share words with the query, as memory_search finds and orders
// them.
//
// Out: raw is one list of the entries as the view holds them, each checked against its checksum; evidence i points at
// /calls/0/body/i.
// Errors: unavailable (stale_view) if an entry's checksum is wrong.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	return withLedger(c, func(l *ledger) *abi.RetrieveResult {
		b, v := l.onView("")
		budget := l.s.budget(r.Budget)
		found, order := new(window), "query"
		if l.s.byQuery {
			found.entries = l.matching(v, r)
		} else {
			found, order = l.newest(v, r.SessionID, budget), "newest_first"
		}
		shown := l.s.format(c, found.entries, budget)
		shown.Truncated = shown.Truncated || found.more
		entries := found.entries[:shown.End]
		result := &abi.RetrieveResult{FormattedContext: shown.Text, Raw: rawOf(entries),
			Trace: l.traceOf(r, v, entries)}
		for i, e := range entries {
			result.Evidence = append(result.Evidence, e.evidence("/calls/0/body/"+sdk.Itoa(i), int64(i+1)))
		}
		shown.Mark(result.Evidence, 0)
		t := result.Trace
		shown.Report(t, budget)
		sdk.Put(&t.Effective, "order", sdk.Text(order))
		sdk.Put(&t.Effective, "branch", sdk.Text(b.Name))
		if budget.MaxTokens != nil {
			sdk.Put(&t.Effective, "max_tokens", sdk.Number(*budget.MaxTokens))
		}
		sdk.Put(&t.Details, "entries_active", sdk.Number(v.active))
		sdk.Put(&t.Details, "entries_hidden", sdk.Number(found.hidden))
		switch {
		case shown.Cut:
			t.Warnings = append(t.Warnings,
				"entry_cut: the newest entry alone is larger than max_tokens; only its beginning is shown")
		case len(found.entries) > 0 && shown.End == 0:
			t.Warnings = append(t.Warnings, "budget_too_small: not even the beginning of the newest entry fits the "+
				"budget")
		}
		return result
	})
}

// rawOf returns entries in the form of the answer's only call.
func rawOf(entries []*entry) abi.RawResult {
	var list wirejson.Encoder
	list.ArrStart()
	for _, e := range entries {
		object.Write(&list, e.members()...)
	}
	list.ArrEnd()
	return abi.RawResult{Calls: []abi.RawCall{{Route: route, Body: list.Bytes()}}}
}

// traceOf describes what was retrieved.
func (l *ledger) traceOf(r *abi.RetrieveRequest, v *view, entries []*entry) *abi.Trace {
	t := l.s.trace("view")
	t.ResultState, t.RetrievedCount = abi.ResultEmpty, sdk.Ptr(int64(len(entries)))
	t.FilterMode, t.FiltersApplied = abi.FilterNone, sdk.Filters(sdk.Labels(r), abi.FilterNone)
	t.RepresentationVersion, t.LastDerivedAt = v.commit, v.time
	for _, e := range entries {
		t.ResultState, t.TimeBasis = abi.ResultResults, abi.TimeEvent
		t.NativeIDs = append(t.NativeIDs, e.EventID)
		if t.OldestRetrievedAt == "" || e.CreatedAt < t.OldestRetrievedAt {
			t.OldestRetrievedAt = e.CreatedAt
		}
		t.NewestRetrievedAt = max(t.NewestRetrievedAt, e.CreatedAt)
	}
	if r.AsOf != "" {
		t.AsOfMode = "ignored"
		t.Warnings = append(t.Warnings, "as_of_ignored: the branch is shown as it is now")
	}
	if _, warning := l.head(); warning != "" {
		t.Warnings = append(t.Warnings, warning)
	}
	return t
}

// window is the newest visible entries.
type window struct {
	entries []*entry
	// hidden counts the entries that may not be shown.
	hidden int64
	// more is true if the ceiling or the budget ended the search.
	more bool
}

// newest reads back from the newest entry until the budget is exceeded, so its cost grows with the budget, not with the
// ledger.
func (l *ledger) newest(v *view, sessionID string, budget abi.ContextBudget) *window {
	w, context := new(window), sdk.ContextOf(l.s.config, l.Scope)
	var tokens, bytes int64
	for item := range l.Items(abi.StateListRequest{Prefix: v.prefix + itemPart, Values: true, Limit: pageItems}) {
		e := l.unpack(item.Key, item.Value)
		if !l.visible(e, sessionID) {
			w.hidden++
			continue
		}
		if budget.MaxTokens != nil && tokens > *budget.MaxTokens || budget.MaxItems != nil &&
			int64(len(w.entries)) > *budget.MaxItems ||
			len(w.entries) == ceilingItems || bytes > ceilingBytes {
			w.more = true
			break
		}
		w.entries = append(w.entries, e)
		bytes += item.Size
		if budget.MaxTokens != nil {
			tokens += context.CountBlock(l.Call, e.block())
		}
	}
	return w
}

// matching returns the visible entries that share words with the request's query, best first.
func (l *ledger) matching(v *view, r *abi.RetrieveRequest) (entries []*entry) {
	if len(wordsOf(r.Query)) == 0 {
		return nil
	}
	for _, h := range l.search(v, &search{query: r.Query, parts: true, sessionID: r.SessionID, limit: ceilingMatches}) {
		entries = append(entries, h.entry)
	}
	return entries
}

// visible reports whether an entry may be shown, and belongs to the session.
func (l *ledger) visible(e *entry, sessionID string) bool {
	if !e.active() || !l.mayShow(e) || l.expired(e) {
		return false
	}
	return e.Scope != session || sessionID != "" && e.ConversationID == sessionID
}

// expired reports whether the time of a temporary entry is over.
func (l *ledger) expired(e *entry) bool {
	if e.Scope != temporary {
		return false
	}
	since, err := abi.ParseTime(e.UpdatedAt)
	return err == nil && l.timeline().After(since.Add(time.Duration(l.s.temporarySeconds)*time.Second))
}

func (e *entry) evidence(pointer string, rank int64) abi.Evidence {
	kind := "fact"
	if e.observed() {
		kind = "observation"
	}
	return abi.Evidence{Pointer: pointer, Rank: rank, NativeID: e.EventID, NativeType: kind, Text: e.Object,
		CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, ExpiredAt: e.ForgottenAt, TimeBasis: abi.TimeEvent,
		SourceEventIDs: e.SourceEvents}
}

// block is an entry in the prompt:
//
//   - user prefers Go for backend (2026-02-04)
//   - user lives in Lyon (2026-02-04, uncertain)
//   - user said I had tea. (2026-02-04, seen 3 times)
//
// and in the frames compact and minimal: m1 [2026-02-04, uncertain] user lives in Lyon
func (e *entry) block() sdk.Block {
	notes := sdk.Day(e.CreatedAt)
	switch {
	case e.observed() && e.Count > 1:
		notes += ", seen " + sdk.Itoa(e.Count) + " times"
	case !e.observed() && e.Confidence < 500:
		notes += ", uncertain"
	}
	return sdk.Block{Before: "- ", Text: e.text(), After: " (" + notes + ")", When: notes}
}

// text returns an entry's text: subject, predicate and object.
func (e *entry) text() string {
	return oneSpaced(e.Subject) + " " + oneSpaced(e.Predicate) + " " + sdk.Indent(e.Object)
}

// oneSpaced returns a text with one blank between words.
func oneSpaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// format fits the newest entries into the budget and sorts them: facts by topic, then observations.
func (s *settings) format(c *sdk.Call, entries []*entry, budget abi.ContextBudget) sdk.Fitted {
	blocks := make([]sdk.Block, len(entries))
	for i, e := range entries {
		blocks[i] = e.block()
		blocks[i].Item = i
	}
	context := sdk.ContextOf(s.config, c.Scope)
	context.UTC = true // the frame full has dates alone
	context.Arrange = func(kept []sdk.Block) []sdk.Block { return grouped(entries, kept) }
	return context.FitFirst(c, blocks, budget)
}

// grouped sorts facts first, then observations under a heading. In each group, entries without a topic come first, then
// each topic under its name, in the order of the topics' newest entries.
func grouped(entries []*entry, blocks []sdk.Block) []sdk.Block {
	list := make([]sdk.Block, 0, len(blocks))
	for _, observed := range [2]bool{false, true} {
		over, topics := "", []string{""}
		if observed && len(list) > 0 { // otherwise they would be under the last topic
			over = "## Observed"
		}
		for _, b := range blocks {
			e := entries[b.Item]
			if e.observed() == observed && !slices.Contains(topics, e.Topic) {
				topics = append(topics, e.Topic)
			}
		}
		for _, topic := range topics {
			heading := over
			switch {
			case topic == "":
			case over == "":
				heading = "## " + oneSpaced(topic)
			default:
				heading += ": " + oneSpaced(topic)
			}
			for _, b := range blocks {
				if e := entries[b.Item]; e.observed() == observed && e.Topic == topic {
					b.Heading = heading
					list = append(list, b)
				}
			}
		}
	}
	return list
}

// formatContext formats the entries of an earlier result.
//
// Errors: invalid_argument when the result is not one of retrieve.
func formatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	var entries []*entry
	for i := range r.Result.Raw.Calls {
		call := &r.Result.Raw.Calls[i]
		if call.Route != route {
			return nil, wrong("result.raw.calls", call.Route+" is no call of retrieve")
		}
		if err := wirejson.DecodeBytes(call.Body).Arr(func(d *wirejson.Decoder) error {
			item, err := d.Raw()
			if err != nil {
				return err
			}
			e, err := decodeEntry(item)
			entries = append(entries, e)
			return err
		}); err != nil {
			return nil, wrong("result.raw.calls", err.Error())
		}
	}
	return s.format(c, entries, s.budget(r.Budget)).Result(r.Result.Evidence), nil
}
