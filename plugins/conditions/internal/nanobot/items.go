package nanobot

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// stateRoute is the name in raw.calls of the slot's own state.
const stateRoute = "state"

// longTerm is the kind of a file that is kept as a whole.
const longTerm = "long_term"

// Item is one piece of memory in a result.
type Item struct {
	ID string
	// Kind is long_term, history, summary or tail.
	Kind string
	// Title is the heading of the item's section.
	Title   string
	Text    string
	Created string
	Updated string
	Events  []string
}

// WriteItems writes a list of items.
func WriteItems(e *wirejson.Encoder, items []Item) {
	e.ArrStart()
	for i := range items {
		object.Write(e, items[i].members()...)
	}
	e.ArrEnd()
}

func (x *Item) members() []object.Member {
	return []object.Member{object.Optional("id", &x.ID), object.Optional("kind", &x.Kind),
		object.Optional("title", &x.Title), object.Optional("text", &x.Text),
		object.Optional("created_at", &x.Created), object.Optional("updated_at",
			&x.Updated), object.Optional("source_event_ids", &x.Events)}
}

// itemsOf reads the items of an earlier result.
//
// Errors: invalid_argument when the result is not one of retrieve.
func itemsOf(raw *abi.RawResult) ([]Item, error) {
	var items []Item
	for i := range raw.Calls {
		if raw.Calls[i].Route != stateRoute {
			return nil, abi.NewError(abi.CodeInvalidArgument,
				"result.raw.calls: "+raw.Calls[i].Route+" is no call of retrieve")
		}
		err := wirejson.DecodeBytes(raw.Calls[i].Body).Arr(func(d *wirejson.Decoder) error {
			var x Item
			err := object.Read(d, nil, x.members()...)
			items = append(items, x)
			return err
		})
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+err.Error())
		}
	}
	return items, nil
}

// evidence returns a pointer to each item.
func evidence(items []Item) []abi.Evidence {
	var list []abi.Evidence
	for i, x := range items {
		list = append(list, abi.Evidence{Pointer: "/calls/0/body/" + sdk.Itoa(i), Rank: int64(i + 1), Group: x.Kind,
			NativeID: x.ID, NativeType: x.Kind,
			Text: x.Text, CreatedAt: rfc(x.Created), UpdatedAt: rfc(x.Updated), TimeBasis: basis(x.Kind),
			SourceEventIDs: x.Events})
	}
	return list
}

func basis(kind string) abi.TimeBasis {
	if kind == "tail" {
		return abi.TimeEvent
	}
	return abi.TimeDerived
}

// rfc returns a time if it is RFC 3339, else "": imported files have times in other formats.
func rfc(at string) string {
	if _, err := abi.ParseTime(at); err != nil {
		return ""
	}
	return at
}

// tailKind marks messages of the requesting session. The newest of them are kept, and shown oldest first.
const tailKind = "tail"

// longTermShare is the share that the files have of a budget, where the history and the session's messages have 1 each.
// What a section does not use goes to the others.
const longTermShare = 3

// fit formats items within a budget. Each section is cut at line ends; from the tail the oldest are dropped first.
func fit(c *sdk.Call, config *abi.GuestConfig, items []Item, budget abi.ContextBudget) sdk.Fitted {
	budget.MaxItems = nil // the items were counted already; these are lines
	const files, history, tail = 0, 1, 2
	var blocks []sdk.Block
	var sections []int
	for i := range items {
		section := history
		switch items[i].Kind {
		case longTerm:
			section = files
		case tailKind:
			continue
		}
		blocks = items[i].blocks(blocks, i)
		for len(sections) < len(blocks) {
			sections = append(sections, section)
		}
	}
	for i := range slices.Backward(items) { // newest first, so that its old end is cut
		if items[i].Kind == tailKind {
			blocks = append(blocks, sdk.Block{Item: i, Heading: heading(items[i].Title), Text: items[i].Text})
			sections = append(sections, tail)
		}
	}
	context := sdk.ContextOf(config, c.Scope)
	context.UTC = true // times of messages and history entries
	return context.FitShares(c, blocks, sections, []int64{longTermShare, 1, 1}, budget)
}

func heading(title string) string { return "## " + title }

// blocks appends the item's lines, one block each.
func (x *Item) blocks(to []sdk.Block, item int) []sdk.Block {
	if x.Text == "" {
		return to
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(x.Text, "\n"), "\n") {
		to = append(to, sdk.Block{Item: item, Heading: heading(x.Title), Text: line, Document: x.Kind == longTerm})
	}
	return to
}

// budget returns the request's budget, bounded by the configuration.
func (b *Base) budget(asked abi.ContextBudget) abi.ContextBudget {
	if asked.MaxTokens == nil || *asked.MaxTokens > b.MaxTokens {
		asked.MaxTokens = &b.MaxTokens
	}
	return asked
}

// result returns the answer of a retrieval with these items, in order. notes are warnings.
func (b *Base) result(r *abi.RetrieveRequest, items []Item, notes []string) *abi.RetrieveResult {
	if r.Budget.MaxItems != nil && int64(len(items)) > max(0, *r.Budget.MaxItems) {
		items = items[:max(0, *r.Budget.MaxItems)]
		notes = append(notes, "items_left_out: max_items is smaller than the memory")
	}
	budget := b.budget(r.Budget)
	fitted := fit(b.Call, b.Config, items, budget)
	usage, _ := model.ReadUsage(b.State)
	t := b.Trace("state_get")
	t.Consistency, t.ResultState, t.RetrievedCount = "committed", abi.ResultEmpty, sdk.Ptr(int64(len(items)))
	t.FilterMode, t.FiltersApplied = abi.FilterNone, sdk.Filters(sdk.Labels(r), abi.FilterNone)
	sdk.Put(&t.Effective, "max_tokens", sdk.Number(*budget.MaxTokens))
	sdk.Put(&t.Details, "llm", usage.JSON())
	t.Warnings = notes
	fitted.Report(t, r.Budget)
	shown := evidence(items)
	fitted.Mark(shown, 0)
	if r.AsOf != "" {
		t.AsOfMode = "ignored"
		t.Warnings = append(t.Warnings, "as_of_ignored: the files are kept as they are now")
	}
	for i := range items {
		t.ResultState, t.TimeBasis = abi.ResultResults, abi.TimeDerived
		t.NativeIDs = append(t.NativeIDs, items[i].ID)
	}
	if fitted.Text == "" && len(items) > 0 {
		t.Warnings = append(t.Warnings, "budget_too_small: not even the beginning of the first item fits the budget")
	}
	var body wirejson.Encoder
	WriteItems(&body, items)
	return &abi.RetrieveResult{Raw: abi.RawResult{Calls: []abi.RawCall{{Route: stateRoute, Body: body.Bytes()}}},
		FormattedContext: fitted.Text,
		Evidence:         shown, Trace: t}
}

// tail returns the session's messages from a number on, at most the last MaxHistory, as items.
func (b *Base) tail(s *Session, from int64) []Item {
	if s.Messages == s.Pointer && from == s.Messages {
		return nil
	}
	from = max(s.Base, from)
	if b.MaxHistory > 0 {
		from = max(from, s.Messages-b.MaxHistory)
	}
	messages, _ := s.Read(b.State, from, s.Messages)
	for i := range messages {
		messages[i].TurnID = s.NativeID() + "#" + sdk.Itoa(from+int64(i)) // its index, if it is shown
	}
	var items []Item
	for _, m := range Replay(messages, 0) {
		if text := m.Render(); text != "" {
			x := Item{ID: m.TurnID, Kind: tailKind, Title: "Recent messages of this session", Text: text,
				Created: m.Timestamp}
			if m.EventID != "" {
				x.Events = []string{m.EventID}
			}
			items = append(items, x)
		}
	}
	return items
}

// Words are the lower-cased runs of letters and digits of a text.
func Words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r <= 127
	})
}

// matches counts how many of the query's words are in a text, ignoring case.
func matches(words []string, text string) (n int64) {
	text = strings.ToLower(text)
	for _, w := range words {
		if strings.Contains(text, w) {
			n++
		}
	}
	return n
}

// Search collects the history items that share words with a query.
type Search struct {
	words []string
	found []rankedItem
}

// rankedItem is an item with the number of shared words.
type rankedItem struct {
	words int64
	Item
}

// NewSearch begins a search.
func NewSearch(query string) *Search { return &Search{words: Words(query)} }

// Add adds an item if it shares words with the query. Items must come oldest first.
func (s *Search) Add(x Item) {
	if n := matches(s.words, x.Text); n > 0 {
		s.found = append(s.found, rankedItem{n, x})
	}
}

// maxFound bounds the items that a search returns.
const maxFound = 20

// Best returns the items with the most shared words, newest first among equals.
func (s *Search) Best() (items []Item) {
	slices.Reverse(s.found)
	best := ordered(s.found, func(x rankedItem) int64 { return -x.words })
	for _, x := range best[:min(len(best), maxFound)] {
		items = append(items, x.Item)
	}
	return items
}
