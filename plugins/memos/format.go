package main

import (
	"strconv"
	"strings"
	"unsafe"

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
	w := writer{settings: s}
	w.room(size)
	w.about.room(120)
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
	text
	*settings
	// about is what stands in brackets before a memory.
	about text
	// known is a time that was found to be one.
	known string
}

// block is one memory. Times are said, when the user said it, or else ingested, when MemOS took it in.
func (w *writer) block(m *item) {
	about := &w.about
	about.buf = about.buf[:0]
	if m.kind != "" {
		about.tell("", m.kind)
	}
	if m.raw() {
		about.tell("raw", "")
	}
	if at := m.said(&w.known); at != "" {
		about.tell("said ", at)
	} else if m.createdAt != "" {
		about.tell("ingested ", m.createdAt)
	}
	if m.scored && m.relativity != 0 && w.rerank {
		about.tell("score ", "")
		about.buf = strconv.AppendFloat(about.buf, m.relativity, 'f', 2, 64)
	}
	if m.id != "" {
		about.tell("id ", m.id)
	}
	begin := len(w.buf)
	w.put("- [")
	w.put(sdk.OneLine(about.from(0)))
	w.put("] ")
	rest, more := strings.TrimRight(m.memory, "\n"), true
	for line := ""; more; {
		if line, rest, more = strings.Cut(rest, "\n"); more {
			w.put(line)
			w.put("\n  ")
		} else {
			w.put(line)
		}
	}
	if plain := w.from(begin); strings.IndexByte(plain, '<') >= 0 {
		w.buf = append(w.buf[:begin], sdk.EscapeText(plain)...)
	}
	w.put("\n")
}

// text is a string in the making. TinyGo calls a function for every append, and two for every write to a strings.Builder, so what is written is put into its
// place instead.
type text struct{ buf []byte }

func (t *text) put(s string) {
	n := len(t.buf)
	if n+len(s) > cap(t.buf) {
		t.room(len(s))
	}
	t.buf = t.buf[:n+len(s)]
	copy(t.buf[n:], s)
}

// tell puts one thing more that is known of a memory: what, and its value.
func (t *text) tell(what, value string) {
	if len(t.buf) > 0 {
		t.put(" | ")
	}
	t.put(what)
	t.put(value)
}

// room makes room for n bytes.
//
//go:noinline
func (t *text) room(n int) {
	t.buf = append(make([]byte, 0, 2*len(t.buf)+n+64), t.buf...)
}

// from is what was put from a place on. It is good until that is written over.
func (t *text) from(begin int) string {
	return unsafe.String(unsafe.SliceData(t.buf[begin:]), len(t.buf)-begin)
}

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
