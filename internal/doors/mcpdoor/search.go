package mcpdoor

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// answerLimit bounds an answer's text, in characters: from 16,000 on some clients store an answer in a file instead of
// showing it to the model.
const answerLimit = 15_500

// searchResult is the result of a retrieval.
type searchResult struct {
	text  string
	meta  mcp.Meta
	items []map[string]any
}

func (d *Door) search(ctx context.Context, a arguments) (*mcp.CallToolResult, error) {
	query, err := a.text("query")
	if err != nil {
		return nil, err
	}
	items, err := a.count("max_items")
	if err != nil {
		return nil, err
	}
	ctx, done := context.WithTimeout(ctx, d.options.SearchTimeout)
	defer done()
	f, err := d.retrieve(ctx, query, items)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{"found": f.text != "", "context": f.text}
	if f.text == "" {
		f.text = "Memory has nothing on this."
	}
	fields["items"], fields["items_left_out"] = fitting(f.items, f.text)
	result := textResult(f.text, fields)
	delete(fields, "message") // it would repeat the context
	result.Meta = f.meta
	return result, nil
}

// itemsOf returns the origin of each item, without its text, which is in the context.
func itemsOf(evidence []abi.Evidence) []map[string]any {
	items := make([]map[string]any, 0, len(evidence))
	for i := range evidence {
		e := &evidence[i]
		item := map[string]any{"rank": e.Rank, "event_ids": nonNil(e.SourceEventIDs)}
		if e.Score != nil {
			item["score"] = *e.Score
		}
		for name, value := range map[string]string{"native_id": e.NativeID, "native_type": e.NativeType,
			"created_at": e.CreatedAt} {
			if value != "" {
				item[name] = value
			}
		}
		items = append(items, item)
	}
	return items
}

// fitting returns as many of the items, best first, as fit into an answer besides the text, and the number of the
// others.
func fitting(items []map[string]any, text string) (fit []map[string]any, leftOut int) {
	room := answerLimit - utf8.RuneCountInString(text)
	for i, item := range items {
		line, err := json.Marshal(item)
		if room -= len(line) + 1; err != nil || room < 0 {
			return items[:i], len(items) - i
		}
	}
	return items, 0
}

// retrieve asks the slot for a context. The text is empty if there is no memory.
func (d *Door) retrieve(ctx context.Context, query string, items *int64) (f searchResult, err error) {
	tokens := d.options.MaxTokens
	request := &abi.RetrieveRequest{Query: query, Scope: d.options.Scope, SessionID: d.options.Session,
		Budget: abi.ContextBudget{MaxTokens: &tokens, MaxItems: items}}
	if err := request.Validate(); err != nil {
		return f, err
	}
	err = d.options.Slot(ctx, func(ctx context.Context, c host.Contract) error {
		r, err := c.Retrieve(ctx, request)
		if err != nil {
			return err
		}
		f = searchResult{text: r.FormattedContext, meta: meta(r.Trace), items: itemsOf(r.Evidence)}
		if t := r.Trace; t != nil && len(t.ReadSideEffects) > 0 {
			d.note(func(s *state) { s.sideEffects = true })
		}
		if utf8.RuneCountInString(f.text) <= answerLimit {
			return nil
		}
		f.text, err = d.shorten(ctx, c, r, request)
		return err
	})
	return f, err
}

// shorten formats a result again with a budget that fits into an answer, if tokens were longer than estimated.
func (d *Door) shorten(ctx context.Context, c host.Contract, r *abi.RetrieveResult, request *abi.RetrieveRequest) (
	string, error) {
	again := &abi.FormatRequest{Result: *r, Budget: request.Budget, Scope: request.Scope}
	for size := utf8.RuneCountInString(r.FormattedContext); ; {
		tokens := *again.Budget.MaxTokens * answerLimit / int64(size) * 9 / 10
		if tokens < 1 {
			return "", abi.NewError(abi.CodeTooLarge, fmt.Sprintf("the context has %d characters, and an answer %d at most",
				size, answerLimit)).WithHint("ask for less with max_items")
		}
		again.Budget.MaxTokens = &tokens
		short, err := c.FormatContext(ctx, again)
		if err != nil {
			return "", err
		}
		if size = utf8.RuneCountInString(short.FormattedContext); size <= answerLimit {
			return short.FormattedContext, nil
		}
	}
}

// meta returns details about an answer for the client, which a model does not need.
func meta(t *abi.Trace) mcp.Meta {
	if t == nil {
		return nil
	}
	brief := map[string]any{"provider": t.BackendName, "kind": t.ConditionKind, "result_state": t.ResultState,
		"latency_ms": t.LatencyMS, "warnings": t.Warnings}
	if t.TokenCount != nil {
		brief["token_count"] = *t.TokenCount
	}
	return mcp.Meta{"memhost/trace": brief}
}
