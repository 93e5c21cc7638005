package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/text/jsonpointer"
)

// leastUsed is how much of a budget of tokens a context has to use, in percent, when not all that came is shown in it.
const leastUsed = 60

// groups asks for a part of what there is, where all groups of items are full, where one is empty, and where all others
// are: the items are taken out of the backend's answers on their way to the provider. A budget is for what there is, so
// that each group has a share of it, and what an empty group would have had goes to the others. Without groups, all
// items count as one.
func (b *bench) groups(q question) outcome {
	if q.noAnswer != nil {
		return *q.noAnswer
	}
	all, err := b.retrieve(q.request(abi.ContextBudget{MaxTokens: limit(roomForAll)}))
	if err != nil {
		return refused("retrieve", err)
	}
	if o := b.crowded(q, all); o != nil {
		return *o
	}
	items, names := itemsByGroup(all)
	if len(names) == 0 {
		names = []string{"all"} // there are no groups, or the answer does not separate them
	}
	var told []string
	for _, name := range names {
		var others []any
		for _, other := range names {
			if other != name {
				others = append(others, items[other]...)
			}
		}
		for state, away := range map[string][]any{"empty": items[name], "the only one with items": others} {
			if len(away) == 0 && len(names) > 1 || len(names) == 1 && state == "empty" {
				continue
			}
			var used int64
			var o *outcome
			b.wire.during(dropItems(away), func() { used, o = b.uses(q) })
			if o != nil {
				o.reason = fmt.Sprintf("group %q is %s: %s", name, state, o.reason)
				return *o
			}
			told = append(told, fmt.Sprintf("%s %s: %d %%", name, state, used))
		}
	}
	slices.Sort(told)
	return passed("used of half of what all would take: %s", strings.Join(told, "; "))
}

// oneOf is the budget for one of several equal parts of a context.
func oneOf(parts int, whole *abi.RetrieveResult) int64 {
	frame := int64(0) // is paid once, however few items there are
	if whole.Trace.FrameTokens != nil {
		frame = *whole.Trace.FrameTokens
	}
	return frame + (*whole.Trace.TokenCount-frame)/int64(parts)
}

// crowded asks for half of what an average group takes, and fails if a group is not shown although its first item takes
// no more than half of an equal share. One ranking of all items is left alone: groups in turn, or falling scores.
func (b *bench) crowded(q question, whole *abi.RetrieveResult) *outcome {
	var names []string
	ranked := true
	for i, e := range whole.Evidence {
		if i > 0 && e.Group != whole.Evidence[i-1].Group && slices.Contains(names, e.Group) {
			return nil
		}
		if !slices.Contains(names, e.Group) {
			names = append(names, e.Group)
		}
		ranked = ranked && e.Score != nil && (i == 0 || *e.Score <= *whole.Evidence[i-1].Score)
	}
	if ranked || len(names) < 2 {
		return nil
	}
	room := oneOf(2*len(names), whole)
	r, err := b.retrieve(q.request(abi.ContextBudget{MaxTokens: limit(room)}))
	if err != nil {
		o := refused("retrieve", err)
		return &o
	}
	first, shown, words := map[string]int{}, map[string]int{}, 0
	for _, e := range r.Evidence {
		if first[e.Group] == 0 {
			first[e.Group] = len(e.Text)
		}
		if e.Shown != nil {
			shown[e.Group]++
			words += int(e.Shown.End - e.Shown.Start)
		}
	}
	for _, name := range names {
		if shown[name] == 0 && first[name] > 0 && 2*len(names)*first[name] <= words {
			o := failed("all groups have items: %d bytes of text are shown in max_tokens %d, and nothing of the group "+
				"%q, whose first item has %d", words, room, name, first[name])
			return &o
		}
	}
	return nil
}

// uses asks for a context of half of the tokens that all items would take, and gives how much of it is used, in
// percent.
func (b *bench) uses(q question) (int64, *outcome) {
	whole, err := b.retrieve(q.request(abi.ContextBudget{MaxTokens: limit(roomForAll)}))
	if err != nil {
		o := refused("retrieve", err)
		return 0, &o
	}
	room := oneOf(2, whole)
	if shownItems(whole) < 3 {
		return 100, nil // an item more or less is half of the context
	}
	mark := b.wire.mark()
	half, err := b.retrieve(q.request(abi.ContextBudget{MaxTokens: limit(room)}))
	if err != nil {
		o := refused("retrieve", err)
		return 0, &o
	}
	used := 100 * *half.Trace.TokenCount / room
	shown, came := shownItems(half), len(half.Evidence)
	left := room - *half.Trace.TokenCount
	fits := func(e abi.Evidence) bool { return e.Shown == nil && int64(len(e.Text)/2+20) <= left }
	switch {
	case used >= leastUsed || shown >= shownItems(whole):
		return used, nil
	case shown < came && !slices.ContainsFunc(half.Evidence, fits):
		return used, nil // what is left out is too long for what is left
	case shown == came:
		// Fewer were asked for than there was room for, unless the trace says why.
		if why, o := endReason(half, b.wire.since(mark), room); o != nil || why != "" {
			return used, o
		}
	}
	low := failed("max_tokens %d, of which %d %% are used: %d items are shown of %d that came, and %d with twice the "+
		"budget", room, used, shown, came, shownItems(whole))
	return used, &low
}

// itemsByGroup are the values in raw to which the evidence of each group points, and the groups' names in order.
func itemsByGroup(r *abi.RetrieveResult) (items map[string][]any, names []string) {
	raw, ok := rawValue(r)
	if !ok {
		return nil, nil
	}
	items = map[string][]any{}
	for _, e := range r.Evidence {
		v, found := jsonpointer.Find(raw, e.Pointer)
		if _, object := v.(map[string]any); !found || !object || e.Group == "" || e.Span != nil {
			continue
		}
		if !slices.Contains(names, e.Group) {
			names = append(names, e.Group)
		}
		items[e.Group] = append(items[e.Group], v)
	}
	return items, names
}

// dropItems takes values out of every list of the backend's answers to reads.
func dropItems(away []any) host.Interceptor {
	return func(ctx context.Context, call host.NativeCall, send next) (host.NativeAnswer, error) {
		answer, err := send(ctx)
		body, ok := decode(answer.Body)
		if err != nil || call.Class != abi.ClassRead || !ok {
			return answer, err
		}
		removed := 0
		body = withoutItems(body, away, &removed)
		if text, err := json.Marshal(body); err == nil && removed > 0 {
			answer.Body = text
		}
		return answer, nil
	}
}

// withoutItems is a value whose lists have no item that is one of away.
func withoutItems(value any, away []any, removed *int) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = withoutItems(inner, away, removed)
		}
	case []any:
		kept := slices.DeleteFunc(v, func(x any) bool {
			return slices.ContainsFunc(away, func(y any) bool { return sameValue(x, y) })
		})
		*removed += len(v) - len(kept)
		for i := range kept {
			kept[i] = withoutItems(kept[i], away, removed)
		}
		return kept
	}
	return value
}
