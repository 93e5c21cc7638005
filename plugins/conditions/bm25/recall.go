package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// recall is a second provider of this module, for people who have no memory server. It shows
//
//  1. the messages that share words with the query, best first as bm25 ranks them, in nine tenths of the budget; with an
//     embedder also those that are near it, and in half of the budget if no message shares a word;
//  2. the messages just before and after those, of the same session, in half of what is left;
//  3. the newest messages, in the rest.
//
// So a question finds its turn together with the messages around it, a greeting gets the latest messages, and a memory
// that fits the budget is shown completely. The messages are shown in order of time.
func (r *reader) recall(best []hit, budget abi.ContextBudget, twentieths int64) {
	r.hits(best, share(budget, twentieths, 20))
	matched := len(r.found)
	r.around(r.found[:matched:matched], share(budget, 19, 20))
	r.newest(budget)
}

// The first step's share of the budget, in twentieths: hitShare, or vectorShare if only vectors found something. Some
// vectors are near to any query, even to a greeting, so they get less.
const hitShare, vectorShare = int64(18), int64(10)

// share is a part of a budget, at least one item and token.
func share(b abi.ContextBudget, part, of int64) abi.ContextBudget {
	b.MaxItems = sdk.Ptr(max(1, *b.MaxItems*part/of))
	if b.MaxTokens != nil {
		b.MaxTokens = sdk.Ptr(max(1, *b.MaxTokens*part/of))
	}
	return b
}

// around takes the neighbours of each hit that its session has.
func (r *reader) around(hits []*scoredMessage, budget abi.ContextBudget) {
	var numbers []int64
	var sessions []string
	for _, of := range hits {
		for _, n := range []int64{of.number - 1, of.number + 1} {
			if n > 0 {
				numbers, sessions = append(numbers, n), append(sessions, of.sessionID)
			}
		}
	}
	for i, m := range r.messages(numbers, budget) {
		if m.sessionID == sessions[i] {
			r.take(m, budget)
		}
	}
}

// newestPage is how many keys are listed at once.
const newestPage = 50

// newest adds messages by their time, newest first.
func (r *reader) newest(budget abi.ContextBudget) {
	list := abi.StateListRequest{Prefix: whenPrefix, Limit: newestPage, Values: true}
	if r.asOf != "" {
		list.After = timeKey(&message{timestamp: r.asOf})
	}
	for more := true; more && !r.overBudget(budget); {
		var items []sdk.Item
		var numbers []int64
		items, more = r.List(list)
		for _, item := range items { // another call would make their values invalid
			n, err := strconv.ParseInt(string(item.Value), 10, 64)
			if err != nil {
				r.Fail(state.Unreadable(item.Key))
			}
			numbers, list.After = append(numbers, n), item.Key
		}
		for _, m := range r.messages(numbers, budget) {
			r.take(m, budget)
		}
	}
}

// common reports whether a word occurs in so many messages that it says little about any of them, such as "you" or a
// speaker's name. recall ignores messages that share only common words with the query. bm25 uses every word.
func (s *settings) common(with, held int64) bool {
	const few = 20 // with so few messages, any word may matter
	return s.recall && held > few && with*4 > held
}

// whenPrefix begins the keys by which recall finds its newest messages.
const whenPrefix = "when/"

// whenKey is the key of a message by its time, newest first; messages of the same time are ordered last first.
func whenKey(m *message, n int64) string { return timeKey(m) + "/" + invertedHex(1<<48-n, 12) }

// timeKey sorts before the keys of all messages at or before the message's time, and after those of later ones.
func timeKey(m *message) string {
	at := timeOf(m.timestamp)
	return whenPrefix + invertedHex(1<<40-at.Unix(), 11) + invertedHex(999_999_999-int64(at.Nanosecond()), 8)
}

// invertedHex is n in hex, with leading zeros.
func invertedHex(n int64, digits int) string {
	s := strconv.FormatInt(n, 16)
	return strings.Repeat("0", max(0, digits-len(s))) + s
}
