package main

import (
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// route is what raw.calls names: the slot's own state.
const route = "state"

const (
	// ceilingItems and ceilingBytes bound what one retrieval takes where no budget does: the guest has 128 MiB.
	ceilingItems = 5000
	ceilingBytes = 4 << 20
	// roomBytes is the memory for what a retrieval holds at once: entries as they are stored, read, shown and answered.
	roomBytes = 4 << 20
	// namesBytes is about how much longer an entry is as JSON than packed.
	namesBytes = 320
	// pageItems is how many entries are read at once.
	pageItems = 64
)

// retrieve returns the entries of the current branch that are visible, newest first until the budget, whatever the query.
//
// Out: raw is one list of the entries as the view holds them, each checked against its checksum; evidence i points at /calls/0/body/i.
// Errors: unavailable (stale_view) for an entry that is not what was stored.
func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	l, err := open(c)
	if err != nil {
		return nil, err
	}
	b, v, err := l.onView("")
	if err != nil {
		return nil, err
	}
	budget := l.s.budget(r.Budget)
	sdk.Room(roomBytes)
	found, err := l.newest(v, r.SessionID, budget)
	if err != nil {
		return nil, err
	}
	shown := l.s.format(c, found.entries, budget)
	_, warning, err := l.head()
	if err != nil {
		return nil, err
	}
	result := &abi.RetrieveResult{FormattedContext: shown.Text, Evidence: make([]abi.Evidence, 0, shown.End)}
	t := l.s.trace("view")
	result.Trace = t
	body := make([]byte, 0, found.bytes+int64(len(found.entries))*namesBytes+2)
	body = append(body, '[')
	for i, e := range found.entries[:shown.End] {
		if i > 0 {
			body = append(body, ',')
		}
		body = e.appendTo(body)
		result.Evidence = append(result.Evidence, e.evidence("/calls/0/body/"+sdk.Itoa(i), int64(i+1)))
		t.NativeIDs = append(t.NativeIDs, e.EventID)
		if t.OldestRetrievedAt == "" || e.CreatedAt < t.OldestRetrievedAt {
			t.OldestRetrievedAt = e.CreatedAt
		}
		t.NewestRetrievedAt = max(t.NewestRetrievedAt, e.CreatedAt)
	}
	result.Raw = abi.RawResult{Calls: []abi.RawCall{{Route: route, Body: append(body, ']')}}}
	t.ResultState, t.RetrievedCount = abi.ResultEmpty, sdk.Ptr(int64(shown.End))
	if shown.End > 0 {
		t.ResultState, t.TimeBasis = abi.ResultResults, abi.TimeEvent
	}
	t.FilterMode, t.FiltersApplied = abi.FilterNone, sdk.Filters(sdk.Labels(r), abi.FilterNone)
	t.Effective = abi.Members[abi.Raw]{{Name: "order", Value: sdk.Text("newest_first")}, {Name: "branch", Value: sdk.Text(b.Name)}}
	if budget.MaxTokens != nil {
		t.Effective.Set("max_tokens", sdk.Number(*budget.MaxTokens))
	}
	t.Details = abi.Members[abi.Raw]{{Name: "entries_active", Value: sdk.Number(v.active)}, {Name: "entries_hidden", Value: sdk.Number(found.hidden)}}
	t.RepresentationVersion = v.commit
	if v.time != "" {
		t.LastDerivedAt = v.time
	}
	if r.AsOf != "" {
		t.AsOfMode = "ignored"
		t.Warnings = append(t.Warnings, "as_of_ignored: the branch is shown as it is now")
	}
	if warning != "" {
		t.Warnings = append(t.Warnings, warning)
	}
	shown.Truncated = shown.Truncated || found.more
	shown.Report(t, budget)
	switch {
	case shown.Cut:
		t.Warnings = append(t.Warnings, "entry_cut: the newest entry alone is larger than max_tokens; only its beginning is shown")
	case len(found.entries) > 0 && shown.End == 0:
		t.Warnings = append(t.Warnings, "budget_too_small: not even the beginning of the newest entry fits the budget")
	}
	return result, nil
}

// window is the newest visible entries.
type window struct {
	entries []*entry
	// bytes are their sizes as stored.
	bytes int64
	// hidden counts those that were passed over.
	hidden int64
	// more is true where the ceiling, or the budget, ended the search.
	more bool
}

// newest reads back from the newest entry until more than the budget is there: its work grows with the budget, not with the ledger.
func (l *ledger) newest(v *view, sessionID string, budget abi.ContextBudget) (*window, error) {
	w := new(window)
	var tokens int64
	r := abi.StateListRequest{Prefix: v.prefix + "item/", Values: true, Limit: pageItems}
	for {
		items, more, err := l.List(r)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			r.After = item.Key
			e, err := unpack(item.Value)
			if err != nil {
				return nil, damaged(item.Key)
			}
			if !l.visible(e, sessionID) {
				w.hidden++
				continue
			}
			if budget.MaxTokens != nil && tokens > *budget.MaxTokens || budget.MaxItems != nil && int64(len(w.entries)) > *budget.MaxItems ||
				len(w.entries) == ceilingItems || w.bytes > ceilingBytes {
				w.more = true
				return w, nil
			}
			e.line = line(e)
			w.entries = append(w.entries, e)
			w.bytes += item.Size
			if budget.MaxTokens != nil {
				tokens += l.CountTokens(e.line)
			}
		}
		if !more {
			return w, nil
		}
	}
}

// visible tells whether an entry is shown at all, and in a session.
func (l *ledger) visible(e *entry, sessionID string) bool {
	switch {
	case e.ForgottenAt != "":
		return false
	case e.Sensitivity == confidential && !l.s.exposeConfidential:
		return false
	case e.Scope == session:
		return sessionID != "" && e.ConversationID == sessionID
	case e.Scope == temporary:
		return !l.expired(e)
	}
	return true
}

// expired tells of a temporary entry that its time is over.
func (l *ledger) expired(e *entry) bool {
	if e.Scope != temporary {
		return false
	}
	since, err := abi.ParseTime(e.UpdatedAt)
	now, err2 := abi.ParseTime(l.Now)
	return err == nil && err2 == nil && now.After(since.Add(time.Duration(l.s.temporarySeconds)*time.Second))
}

func (e *entry) evidence(pointer string, rank int64) abi.Evidence {
	kind := "fact"
	if e.observed() {
		kind = "observation"
	}
	return abi.Evidence{Pointer: pointer, Rank: rank, NativeID: e.EventID, NativeType: kind, Text: e.Object,
		CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, ExpiredAt: e.ForgottenAt, TimeBasis: abi.TimeEvent, SourceEventIDs: e.SourceEvents}
}

// line is an entry in the prompt:
//
//   - user prefers Go for backend (2026-02-04)
//   - user lives in Lyon (2026-02-04, uncertain)
//   - user said I had tea. (2026-02-04, seen 3 times)
func line(e *entry) string {
	var b strings.Builder
	b.Grow(len(e.Subject) + len(e.Predicate) + len(e.Object) + 48)
	b.WriteString("- ")
	b.WriteString(words(e.Subject))
	b.WriteByte(' ')
	b.WriteString(words(e.Predicate))
	b.WriteByte(' ')
	b.WriteString(strings.ReplaceAll(e.Object, "\n", "\n  "))
	b.WriteString(" (")
	date, _, _ := strings.Cut(e.CreatedAt, "T")
	b.WriteString(date)
	if e.observed() {
		if e.Count > 1 {
			b.WriteString(", seen " + sdk.Itoa(e.Count) + " times")
		}
	} else if e.Confidence < 500 {
		b.WriteString(", uncertain")
	}
	b.WriteString(")\n")
	return sdk.EscapeText(b.String())
}

// words is a text with one blank between its words.
func words(s string) string {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x80 || c == ' ' && i+1 < len(s) && s[i+1] == ' ' {
			return strings.Join(strings.Fields(s), " ")
		}
	}
	return s
}

// format fits entries, newest first, into the budget, and puts those that fit in order: facts by topic, the observations last.
func (s *settings) format(c *sdk.Call, entries []*entry, budget abi.ContextBudget) sdk.Fitted {
	blocks := make([]string, len(entries))
	for i, e := range entries {
		blocks[i] = e.line
	}
	context := sdk.ContextOf(s.config, c.Scope)
	if budget.MaxItems == nil || int64(len(entries)) <= *budget.MaxItems {
		text := context.Wrap(grouped(entries, blocks))
		if tokens := c.CountTokens(text); budget.MaxTokens == nil || tokens <= *budget.MaxTokens {
			return sdk.Fitted{Text: text, Tokens: tokens, End: len(entries)}
		}
	}
	fitted := context.FitFirst(c, blocks, budget)
	if fitted.Cut {
		return fitted
	}
	for {
		text := context.Wrap(grouped(entries[:fitted.End], blocks))
		tokens := c.CountTokens(text)
		if fitted.End == 0 || budget.MaxTokens == nil || tokens <= *budget.MaxTokens {
			if fitted.End > 0 {
				fitted.Text, fitted.Tokens = text, tokens
			}
			return fitted
		}
		over := tokens - *budget.MaxTokens
		fitted.Truncated = true
		if fitted.End == 1 { // without the heading it fits
			return context.FitFirst(c, blocks[:1], budget)
		}
		for over > 0 && fitted.End > 1 {
			fitted.End--
			over -= c.CountTokens(blocks[fitted.End])
		}
	}
}

// grouped is the text of entries: the facts, then under a heading the observations; of each first what has no topic, then each topic's under its name, in the order of the
// topics' newest ones.
func grouped(entries []*entry, blocks []string) string {
	var text strings.Builder
	size := 0
	for i := range entries {
		size += len(blocks[i])
	}
	text.Grow(size)
	for _, observed := range [2]bool{false, true} {
		var topics []string
		for _, e := range entries {
			if e.observed() == observed && e.Topic != "" && !slices.Contains(topics, e.Topic) {
				topics = append(topics, e.Topic)
			}
		}
		if observed && text.Len() > 0 && slices.ContainsFunc(entries, (*entry).observed) {
			text.WriteString("## Observed\n") // otherwise they would stand under the last topic
		}
		for _, topic := range append([]string{""}, topics...) {
			if topic != "" {
				text.WriteString(sdk.EscapeText("## " + strings.Join(strings.Fields(topic), " ") + "\n"))
			}
			for i, e := range entries {
				if e.observed() == observed && e.Topic == topic {
					text.WriteString(blocks[i])
				}
			}
		}
	}
	return text.String()
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
		if err := eachOf(call.Body, func(item []byte) error {
			e, err := decodeEntry(item)
			e.line = line(e)
			entries = append(entries, e)
			return err
		}); err != nil {
			return nil, wrong("result.raw.calls", err.Error())
		}
	}
	fitted := s.format(c, entries, s.budget(r.Budget))
	return &abi.FormatResult{FormattedContext: fitted.Text, TokenCount: fitted.Tokens, Truncated: fitted.Truncated}, nil
}
