package main

import (
	"strings"

	"github.com/memhost/memhost/abi/words"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// fit renders the items under their groups' own names and keeps as many from the front as the budget allows:
//
//	## text_mem
//	- [LongTermMemory | said 2026-05-01T10:00:00Z | score 0.71 | id 6b0c4a1e-...] The user moved to Lyon.
//	## pref_mem
//	- [PreferenceMemory | ...] ...
func (s *settings) fit(c *sdk.Call, items []found, budget abi.ContextBudget) sdk.Fitted {
	blocks := make([]string, len(items))
	size := 0
	for _, m := range items {
		size += len(m.memory) + len(m.id) + 120 // more than the rest of most blocks
	}
	w := writer{settings: s, buf: make([]byte, 0, size)}
	last := ""
	for i, m := range items {
		begin := len(w.buf)
		if m.in.name != last {
			last = m.in.name
			w.put("## ")
			w.put(last)
			w.put("\n")
		}
		w.block(m.item)
		blocks[i] = w.from(begin)
	}
	return sdk.ContextOf(s.config, c.Scope).FitFirst(c, blocks, budget)
}

// writer puts blocks behind one another, in room that was made before.
type writer struct {
	*settings
	buf []byte
	// known is a time that was found to be one.
	known string
}

// block is one memory. Times are said, when the user said it, or else ingested, when MemOS took it in.
func (w *writer) block(m *item) {
	w.put("- [")
	begin := len(w.buf)
	if m.kind != "" {
		w.put(m.kind)
	}
	if m.raw() {
		w.tell(begin, " | raw", "")
	}
	if at := m.said(&w.known); at != "" {
		w.tell(begin, " | said ", at)
	} else if m.createdAt != "" {
		w.tell(begin, " | ingested ", m.createdAt)
	}
	if m.scored && m.relativity != 0 && w.rerank {
		w.tell(begin, " | score ", "")
		w.buf = sdk.AppendHundredths(w.buf, m.relativity)
	}
	if m.id != "" {
		w.tell(begin, " | id ", m.id)
	}
	memory := strings.TrimRight(m.memory, "\n")
	if words.Plain(memory) && words.Plain(w.from(begin)) {
		w.put("] ")
		w.put(memory)
		w.put("\n")
		return
	}
	text := "- [" + sdk.OneLine(w.from(begin)) + "] " + strings.ReplaceAll(memory, "\n", "\n  ")
	w.buf = append(w.buf[:begin-len("- [")], sdk.EscapeText(text)...)
	w.put("\n")
}

// tell puts one thing more that is known of a memory: what, which begins with what separates it from the one before, and its value. The first begins at begin.
func (w *writer) tell(begin int, what, value string) {
	if len(w.buf) == begin {
		what = what[len(" | "):]
	}
	w.put(what)
	w.put(value)
}

// put writes a part of a block.
func (w *writer) put(part string) { w.buf = sdk.Append(w.buf, part) }

// from is what was put from a place on, good until that is written over.
func (w *writer) from(begin int) string { return words.View(w.buf[begin:]) }

// formatContext formats an earlier result.
//
// Errors: invalid_argument when the result is not one of retrieve.
func formatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	var items []found
	for i := range r.Result.Raw.Calls {
		call := &r.Result.Raw.Calls[i]
		if !strings.HasPrefix(call.Route, "search_") {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+call.Route+" is no call of retrieve")
		}
		a, ok := openAnswer(call.Body)
		if !ok {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: the body is no answer of MemOS")
		}
		groups, err := parseGroups(call.Route, a)
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+abi.AsError(err).Message)
		}
		items = append(items, listed(groups)...)
	}
	fitted := s.fit(c, items, r.Budget)
	return &abi.FormatResult{FormattedContext: fitted.Text, TokenCount: fitted.Tokens, Truncated: fitted.Truncated}, nil
}
