package nanobot

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// StateRoute is what raw.calls names: the slot's own state.
const StateRoute = "state"

// Item is one piece of memory in a result.
type Item struct {
	ID string
	// Kind is long_term, history, summary or tail.
	Kind string
	// Title of the section that it begins or belongs to.
	Title   string
	Text    string
	Created string
	Updated string
	Events  []string
}

// RawOf is the items as raw holds them: one call with a list.
func RawOf(items []Item) abi.RawResult {
	var e jsontext.Encoder
	e.ArrStart()
	for i := range items {
		e.Raw(encodeFields(items[i].fields()))
	}
	e.ArrEnd()
	return abi.RawResult{Calls: []abi.RawCall{{Route: StateRoute, Body: e.Bytes()}}}
}

func (x *Item) fields() []field {
	return []field{word("id", &x.ID), word("kind", &x.Kind), word("title", &x.Title), word("text", &x.Text), word("created_at", &x.Created),
		word("updated_at", &x.Updated), List("source_event_ids", &x.Events)}
}

// ItemsOf reads the items of an earlier result.
//
// Errors: invalid_argument when the result is not one of retrieve.
func ItemsOf(raw *abi.RawResult) ([]Item, error) {
	var items []Item
	for i := range raw.Calls {
		if raw.Calls[i].Route != StateRoute {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+raw.Calls[i].Route+" is no call of retrieve")
		}
		err := jsontext.DecodeBytes(raw.Calls[i].Body).Arr(func(d *jsontext.Decoder) error {
			var x Item
			err := DecodeFrom(d, x.fields(), nil)
			items = append(items, x)
			return err
		})
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+err.Error())
		}
	}
	return items, nil
}

// Evidence points at each item.
func Evidence(items []Item) []abi.Evidence {
	var list []abi.Evidence
	for i, x := range items {
		list = append(list, abi.Evidence{Pointer: "/calls/0/body/" + sdk.Itoa(i), Rank: int64(i + 1), Group: x.Kind, NativeID: x.ID, NativeType: x.Kind,
			Text: x.Text, CreatedAt: rfc(x.Created), UpdatedAt: rfc(x.Updated), TimeBasis: basis(x.Kind), SourceEventIDs: x.Events})
	}
	return list
}

func basis(kind string) abi.TimeBasis {
	if kind == "tail" {
		return abi.TimeEvent
	}
	return abi.TimeDerived
}

// rfc is a time of the contract, or nothing: files that were imported have others.
func rfc(at string) string {
	if _, err := abi.ParseTime(at); err != nil {
		return ""
	}
	return at
}

// tailKind marks messages of the session that asks: of those the newest are kept, and shown oldest first.
const tailKind = "tail"

// Fit formats items within a budget. Items in front are kept longest, cut at line ends; of the tail the oldest go first.
func Fit(c *sdk.Call, config *abi.GuestConfig, items []Item, budget abi.ContextBudget) sdk.Fitted {
	budget.MaxItems = nil // items were counted before; these are lines
	frame := sdk.ContextOf(config, c.Scope)
	tail := 0
	for tail < len(items) && items[len(items)-1-tail].Kind == tailKind {
		tail++
	}
	front := items[:len(items)-tail]
	blocks, title := []string(nil), ""
	for _, x := range front {
		blocks = x.blocks(blocks, x.Title != title)
		title = x.Title
	}
	fixed := len(blocks)
	for i := len(items) - 1; i >= len(front); i-- {
		blocks = append(blocks, sdk.EscapeText(items[i].Text)+"\n")
	}
	if tail > 0 {
		blocks[len(blocks)-1] = heading(items[len(items)-1].Title) + blocks[len(blocks)-1]
	}
	if tail <= 1 {
		return frame.FitFirst(c, blocks, budget)
	}
	// The tail stands newest first, so that it is cut from its old end, and is turned round for showing.
	blocks[len(blocks)-1] = sdk.EscapeText(items[len(front)].Text) + "\n"
	fitted := frame.FitFirst(c, blocks, budget)
	for kept := fitted.End - fixed; kept > 0; kept-- {
		shown := append(append([]string(nil), blocks[:fixed]...), heading(items[len(items)-1].Title))
		for i := fixed + kept - 1; i >= fixed; i-- {
			shown = append(shown, blocks[i])
		}
		whole := frame.FitFirst(c, shown, budget)
		if !whole.Truncated {
			whole.Truncated = fitted.Truncated || kept < fitted.End-fixed || fixed+kept < len(blocks)
			return whole
		}
	}
	fitted = frame.FitFirst(c, blocks[:min(fitted.End, fixed)], budget)
	fitted.Truncated = true
	return fitted
}

func heading(title string) string { return "## " + sdk.EscapeText(title) + "\n" }

// blocks appends the item's lines, each a block; the section's heading stands in the first.
func (x *Item) blocks(to []string, begins bool) []string {
	first := ""
	if begins {
		first = heading(x.Title)
	}
	text := x.Text
	for text != "" {
		line := text
		for i := range len(text) {
			if text[i] == '\n' {
				line = text[:i]
				break
			}
		}
		text = text[min(len(text), len(line)+1):]
		to = append(to, first+sdk.EscapeText(line)+"\n")
		first = ""
	}
	return to
}

// Budget is the request's, bounded by the configuration.
func Budget(b abi.ContextBudget, most int64) abi.ContextBudget {
	if b.MaxTokens == nil || *b.MaxTokens > most {
		b.MaxTokens = &most
	}
	return b
}

// Result is the answer of retrieve for items in order. notes are warnings.
func Result(c *sdk.Call, config *abi.GuestConfig, r *abi.RetrieveRequest, items []Item, most int64, notes []string) (*abi.RetrieveResult, error) {
	if r.Budget.MaxItems != nil && int64(len(items)) > max(0, *r.Budget.MaxItems) {
		items = items[:max(0, *r.Budget.MaxItems)]
		notes = append(notes, "items_left_out: max_items is smaller than the memory")
	}
	budget := Budget(r.Budget, most)
	fitted := Fit(c, config, items, budget)
	u, _, err := ReadUsage(c)
	if err != nil {
		return nil, err
	}
	t := &abi.Trace{BackendName: config.Provider, NativeOperation: "state_get", Consistency: "committed", ResultState: abi.ResultEmpty,
		RetrievedCount: sdk.Ptr(int64(len(items))), FilterMode: abi.FilterNone, FiltersApplied: sdk.Filters(sdk.Labels(r), abi.FilterNone),
		Effective: abi.Members[abi.Raw]{{Name: "max_tokens", Value: sdk.Number(*budget.MaxTokens)}}, Details: abi.Members[abi.Raw]{{Name: "llm", Value: u.JSON()}}, Warnings: notes}
	fitted.Report(t, r.Budget)
	if r.AsOf != "" {
		t.AsOfMode = "ignored"
		t.Warnings = append(t.Warnings, "as_of_ignored: the files are kept as they are now")
	}
	if len(items) > 0 {
		t.ResultState, t.TimeBasis = abi.ResultResults, abi.TimeDerived
		for i := range items {
			t.NativeIDs = append(t.NativeIDs, items[i].ID)
		}
	}
	if fitted.Text == "" && len(items) > 0 {
		t.Warnings = append(t.Warnings, "budget_too_small: not even the beginning of the first item fits the budget")
	}
	return &abi.RetrieveResult{Raw: RawOf(items), FormattedContext: fitted.Text, Evidence: Evidence(items), Trace: t}, nil
}

// Format formats the items of an earlier result.
func Format(c *sdk.Call, config *abi.GuestConfig, r *abi.FormatRequest, most int64) (*abi.FormatResult, error) {
	items, err := ItemsOf(&r.Result.Raw)
	if err != nil {
		return nil, err
	}
	if r.Budget.MaxItems != nil {
		items = items[:min(int64(len(items)), max(0, *r.Budget.MaxItems))]
	}
	fitted := Fit(c, config, items, Budget(r.Budget, most))
	return &abi.FormatResult{FormattedContext: fitted.Text, TokenCount: fitted.Tokens, Truncated: fitted.Truncated}, nil
}

// Tail is the session's messages that are not summarised, as items.
func Tail(c *sdk.Call, sessionID string, from func(*Session) int64, most int64) ([]Item, error) {
	s, err := FindSession(c, sessionID)
	if err != nil || s.Messages == s.Pointer && from(s) == s.Messages {
		return nil, err
	}
	first := max(s.Base, from(s))
	if most > 0 {
		first = max(first, s.Messages-most)
	}
	messages, _, err := s.Read(c, first, s.Messages)
	if err != nil {
		return nil, err
	}
	numbered := make([]Message, len(messages))
	for i := range messages {
		numbered[i] = messages[i]
		numbered[i].TurnID = s.key[2:] + "#" + sdk.Itoa(first+int64(i)) // its place, while it is shown
	}
	var items []Item
	for _, m := range Replay(numbered, 0) {
		if text := m.Render(); text != "" {
			x := Item{ID: m.TurnID, Kind: tailKind, Title: "Recent messages of this session", Text: text, Created: m.Timestamp}
			if m.EventID != "" {
				x.Events = []string{m.EventID}
			}
			items = append(items, x)
		}
	}
	return items, nil
}

// Query words: lower-cased runs of letters and digits.
func words(text string) []string {
	var list []string
	start := -1
	lower := strings.ToLower(text)
	for i, r := range lower {
		letter := r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127
		if letter && start < 0 {
			start = i
		}
		if !letter && start >= 0 {
			list = append(list, lower[start:i])
			start = -1
		}
	}
	if start >= 0 {
		list = append(list, lower[start:])
	}
	return list
}

// Matches counts how many of the query's words stand in a text, whatever their case.
func Matches(query, text string) int {
	text = strings.ToLower(text)
	n := 0
	for _, w := range words(query) {
		if strings.Contains(text, w) {
			n++
		}
	}
	return n
}

// Hit is an entry that shares words with a query. At is its place in the history.
type Hit struct {
	Words int
	At    int64
	Item  Item
}

// hitsMost bounds the entries that a search returns.
const hitsMost = 20

// Best are the items of the hits with most words, of those the newest.
func Best(hits []Hit) []Item {
	var items []Item
	order := Order(len(hits), func(i int) int64 { return -int64(hits[i].Words)<<40 - hits[i].At })
	for _, at := range order[:min(len(order), hitsMost)] {
		items = append(items, hits[at].Item)
	}
	return items
}
