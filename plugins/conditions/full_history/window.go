package main

import (
	"iter"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

const (
	// ceiling is the maximum size of the stored turns that one retrieval reads, in bytes: the guest has 128 MiB.
	ceiling = 4 << 20
	// pageBytes is the maximum size of a page of turns, unless the page has only one.
	pageBytes = 1 << 20
	// bytesPerToken is the assumed size of a token before any turn was read.
	bytesPerToken = 6
)

// window is the end of a history: the turns that a retrieval considers, and those of them that fit.
type window struct {
	turns  []turn // oldest first
	fitted sdk.Fitted
	// total counts everything that the scope stores.
	total tally
	// sameSession counts the turns that were left out because they belong to the requesting session.
	sameSession int64
	// complete is true if no older turn exists.
	complete bool
	// overCeiling is true if the ceiling ended the search, clipped if it cut the newest turn.
	overCeiling, clipped bool
}

// turn is a stored turn.
type turn struct {
	key, eventID, timestamp string
	stored                  abi.Raw
	block                   sdk.Block
}

// kept returns the turns that fit.
func (w *window) kept() []turn { return w.turns[w.fitted.First:w.fitted.End] }

// leftOut returns how many turns were left out although the request allows them; known is false if not all older turns
// were checked.
func (w *window) leftOut(r *abi.RetrieveRequest, s *settings) (n int64, known bool) {
	switch {
	case w.complete:
		return int64(len(w.turns) - len(w.kept())), true
	case r.AsOf == "" && !s.excludeCurrent:
		return w.total.turns - int64(len(w.kept())), true
	}
	return 0, false
}

// reader pages back from the newest turn until the budget is full, so its cost grows with the budget, not with the
// history.
type reader struct {
	*sdk.Call
	settings *settings
	request  *abi.RetrieveRequest
	budget   abi.ContextBudget
	context  sdk.Context
	window   *window
	// turns are the turns read so far, newest first, without the requesting session's. tokens are counted only if the
	// budget bounds them.
	turns         []turn
	bytes, tokens int64
	// listed are keys of turns that have not been read, newest first. more reports whether there are more keys after
	// them; after is the key before them.
	listed []sdk.Item
	more   bool
	after  string
	page   int64
}

// read finds the turns of a request and fits them.
func (s *settings) read(c *sdk.Call, request *abi.RetrieveRequest, budget abi.ContextBudget) (*window, error) {
	held, err := readTally(c)
	if err != nil {
		return nil, err
	}
	r := &reader{Call: c, settings: s, request: request, budget: budget,
		context: sdk.ContextOf(s.config, c.Scope), window: &window{total: held}, more: true}
	if request.AsOf != "" {
		at, err := abi.ParseTime(request.AsOf)
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "as_of: "+abi.AsError(err).Message)
		}
		r.after = timeKey(at)
	}
	for {
		end, err := r.next()
		if err != nil {
			return nil, err
		}
		full := budget.MaxTokens != nil && r.tokens > *budget.MaxTokens || budget.MaxItems != nil &&
			int64(len(r.turns)) > *budget.MaxItems
		if end || full {
			r.fit()
		}
		if end || r.window.fitted.Truncated {
			r.window.complete = end && !r.window.overCeiling
			return r.window, nil
		}
	}
}

// next reads more turns, and reports whether the search has ended.
func (r *reader) next() (end bool, err error) {
	if len(r.listed) == 0 && r.more {
		r.page = min(max(2*r.page, r.nextReadBytes()/max(1, r.window.total.average())+2), r.room(), 1000)
		if r.listed, r.more, err = r.List(abi.StateListRequest{Prefix: turnPrefix, After: r.after,
			Limit: r.page}); err != nil {
			return false, err
		}
	}
	if count := r.choose(); count > 0 {
		items, _, err := r.List(abi.StateListRequest{Prefix: turnPrefix, After: r.after, Limit: int64(count),
			Values: true})
		if err != nil {
			return false, err
		}
		for _, item := range items { // fewer if they do not fit into a page of the host
			if err := r.add(item); err != nil {
				return false, err
			}
			r.after = item.Key
		}
		r.listed = r.listed[len(items):]
		if r.settings.excludeCurrent { // a session may span any number of pages
			r.ReuseValues()
		}
	}
	return r.window.overCeiling || len(r.listed) == 0 && !r.more, nil
}

// nextReadBytes returns how many bytes of turns to read next. If the sum of the turns' tokens exceeds the budget
// although all of them fit, it is a little more.
func (r *reader) nextReadBytes() int64 {
	if r.budget.MaxTokens == nil {
		return pageBytes
	}
	limit, each := min(*r.budget.MaxTokens, ceiling), int64(bytesPerToken)
	if r.tokens > 0 {
		each = r.bytes/r.tokens + 1
	}
	return min(max(limit-r.tokens, limit/16)*each, pageBytes)
}

// choose returns how many of the listed turns to read at once: one, and more while they are wanted and below the
// ceiling.
func (r *reader) choose() int {
	wanted, size := min(r.nextReadBytes(), ceiling-r.bytes), int64(0)
	most := int(min(int64(len(r.listed)), r.room()))
	for i, item := range r.listed[:most] {
		if size += item.Size; i > 0 && size > wanted {
			return i
		}
	}
	return most
}

// room returns how many turns max_items still allows, plus one to see whether there are more.
func (r *reader) room() int64 {
	if r.budget.MaxItems == nil {
		return math.MaxInt64
	}
	return max(1, *r.budget.MaxItems+1-int64(len(r.turns)))
}

// add adds a turn after the newer ones: whole, or clipped if it alone exceeds the ceiling.
func (r *reader) add(item sdk.Item) error {
	stored := item.Value
	if r.settings.excludeCurrent {
		session, err := sessionOf(stored)
		if err != nil {
			return unreadable(item.Key)
		}
		if session == r.request.SessionID {
			r.window.sameSession++
			return nil
		}
		stored = slices.Clone(stored)
	}
	var e abi.MemoryEvent
	if err := abi.Unmarshal(stored, &e); err != nil {
		return unreadable(item.Key)
	}
	t := turn{key: item.Key, eventID: e.EventID, timestamp: e.Timestamp, stored: stored}
	if r.bytes += item.Size; r.bytes > ceiling {
		r.window.overCeiling = true
		if len(r.turns) > 0 {
			return nil
		}
		r.window.clipped = true
		clip(&e, item.Size)
		t.stored = abi.Marshal(&e)
	}
	t.block = block(&e)
	if r.budget.MaxTokens != nil {
		r.tokens += r.context.CountBlock(r.Call, t.block)
	}
	r.turns = append(r.turns, t)
	return nil
}

// sessionOf returns the session of a stored turn. The result refers to stored.
func sessionOf(stored []byte) (session string, err error) {
	d := wirejson.DecodeBytes(stored)
	fields, err := d.ObjIter()
	for err == nil && fields.Next() {
		if fields.Name() == "session_id" {
			session, err = d.Str()
		} else {
			err = d.Skip()
		}
	}
	if err == nil {
		err = fields.Err()
	}
	return session, err
}

// fit sorts the turns by time and fits them into the budget.
func (r *reader) fit() {
	w := r.window
	w.turns = slices.Clone(r.turns)
	slices.Reverse(w.turns)
	blocks := make([]sdk.Block, len(w.turns))
	for i := range w.turns {
		blocks[i] = w.turns[i].block
	}
	w.fitted = r.settings.format(r.Call, blocks, r.budget)
}

// clip shortens a stored event of size bytes to about ceiling: it keeps the beginning of the messages' texts, and no
// metadata.
func clip(e *abi.MemoryEvent, size int64) {
	var all int64
	for text := range texts(e) {
		all += int64(len(*text))
	}
	room := int(all * ceiling / size)
	for text := range texts(e) {
		keep := min(room, len(*text))
		for keep > 0 && keep < len(*text) && !utf8.RuneStart((*text)[keep]) {
			keep--
		}
		*text = (*text)[:keep]
		room -= keep
	}
	e.Metadata = nil
}

// texts iterates over the messages' texts.
func texts(e *abi.MemoryEvent) iter.Seq[*string] {
	return func(yield func(*string) bool) {
		for i := range e.Messages {
			m := &e.Messages[i]
			if m.Content != nil && !yield(m.Content) {
				return
			}
			for j := range m.ToolCalls {
				if !yield(&m.ToolCalls[j].Arguments) {
					return
				}
			}
		}
	}
}
