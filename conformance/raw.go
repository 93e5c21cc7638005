package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/text/jsonpointer"
)

// checkRaw is clause 8.
func checkRaw(b *bench) {
	q := b.speaking(b.scope("raw", "p"), b.kit.target.Probe.Wordings[0](b.kit.names.name()))
	var result *abi.RetrieveResult
	var sent []exchange
	if q.noAnswer == nil {
		mark := b.wire.mark()
		r, err := b.retrieve(q.request(abi.ContextBudget{}))
		if err != nil {
			o := refused("retrieve", err)
			q.noAnswer = &o
		}
		result, sent = r, b.wire.since(mark)
		if q.noAnswer == nil && len(r.Raw.Calls) == 0 {
			o := lacking("raw holds no call")
			q.noAnswer = &o
		}
	}
	unless := func(check func() outcome) func() outcome {
		return func() outcome {
			if q.noAnswer != nil {
				return *q.noAnswer
			}
			return check()
		}
	}
	b.part("verbatim", "every body in raw is the JSON value that the host saw from the backend", unless(func() outcome {
		return verbatim(result, sent)
	}))
	b.part("pointers", "every evidence points at something in raw, in order of rank", unless(func() outcome {
		return pointers(result)
	}))
	b.part("invented", "ids, scores, times and texts of the evidence stand in raw", unless(func() outcome {
		return checkInvented(result, sent)
	}))
	b.part("sources", "evidence says of which events its item came, and has its item's own id", unless(b.sources))
	b.part("provenance", "provenance gives what came of an event, an item or a time, and nothing else, in pages that end",
		unless(b.checkProvenance))
	b.part("trace", "what the trace says of the items agrees with them", unless(func() outcome {
		return traceOfItems(result)
	}))
}

// verbatim compares raw with the answers of the backend.
func verbatim(r *abi.RetrieveResult, sent []exchange) outcome {
	if len(sent) == 0 {
		return notChecked("no native call was made: raw is the provider's own state")
	}
	for i, c := range r.Raw.Calls {
		body, ok := decode(c.Body)
		if !ok {
			return failed("/calls/%d/body is no JSON", i)
		}
		same := false
		for _, x := range sent {
			for _, v := range views(x.answer) {
				same = same || sameValue(body, v)
			}
		}
		if !same && !ownState(c.Route, r.Evidence, sent) {
			return failed("/calls/%d/body (route %s) is not one of the %d answers that the host saw: %s", i, c.Route,
				len(sent), short(string(c.Body), 300))
		}
	}
	return passed("%d bodies as they came", len(r.Raw.Calls))
}

// ownState reports whether a body of raw is the provider's own state, beside native calls that give something else,
// such as a vector for the question: no call went by its route, and no answer holds the text of an item.
func ownState(route string, evidence []abi.Evidence, sent []exchange) bool {
	for _, x := range sent {
		if x.call.Route == route {
			return false
		}
		for _, v := range views(x.answer) {
			for _, e := range evidence {
				if e.Text != "" && holdsText(v, e.Text) {
					return false
				}
			}
		}
	}
	return true
}

// views are the JSON values that an answer can be said to be: the body, its text, the data of server-sent events, the
// rows of a Bolt answer, and the inner values of JSON-RPC and MCP.
func views(a host.NativeAnswer) []any {
	var list []any
	add := func(v any) {
		list = append(list, v)
		object, ok := v.(map[string]any)
		if !ok {
			return
		}
		for _, inner := range []string{"/result", "/result/structuredContent", "/result/structuredContent/result"} {
			if found, ok := jsonpointer.Find(object, inner); ok {
				list = append(list, found)
			}
		}
		content, _ := jsonpointer.Find(object, "/result/content")
		items, _ := content.([]any)
		for _, item := range items {
			if text, ok := jsonpointer.Find(item, "/text"); ok {
				list = append(list, text)
				if inner, ok := decode([]byte(fmt.Sprint(text))); ok {
					list = append(list, inner)
				}
			}
		}
	}
	if v, ok := decode(a.Body); ok {
		add(v)
	} else {
		list = append(list, string(a.Body))
	}
	if a.Bolt != nil { // rows are one JSON array a line: together they are a list
		rows := []any{}
		for line := range bytes.Lines(a.Body) {
			if row, ok := decode(line); ok {
				rows = append(rows, row)
			}
		}
		list = append(list, rows)
	}
	for line := range bytes.Lines(a.Body) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if v, ok := decode(bytes.TrimSpace(data)); ok {
				add(v)
			}
		}
	}
	return list
}

// rawValue is raw as evidence points into it.
func rawValue(r *abi.RetrieveResult) (any, bool) { return decode(abi.Marshal(&r.Raw)) }

func pointers(r *abi.RetrieveResult) outcome {
	raw, ok := rawValue(r)
	if !ok {
		return failed("raw is no JSON")
	}
	for i, e := range r.Evidence {
		v, ok := jsonpointer.Find(raw, e.Pointer)
		first := slices.IndexFunc(r.Evidence, func(x abi.Evidence) bool { return x.Pointer == e.Pointer })
		switch {
		case ok && first < i && e.Span == nil && r.Evidence[first].Span == nil:
			return failed("evidence %d and %d are the same item, at %s", first, i, e.Pointer)
		case !ok || e.Pointer == "":
			return failed("evidence %d points to %q, where nothing is", i, e.Pointer)
		case e.Rank != int64(i+1):
			return failed("evidence %d has the rank %d", i, e.Rank)
		}
		if text, isText := v.(string); e.Span != nil &&
			(!isText || e.Span.Start < 0 || e.Span.Start > e.Span.End || e.Span.End > int64(len(text))) {
			return failed("evidence %d: span %d to %d is not within the text at %s", i, e.Span.Start, e.Span.End,
				e.Pointer)
		}
	}
	if len(r.Evidence) == 0 {
		return lacking("no evidence for %d calls", len(r.Raw.Calls))
	}
	return passed("%d pointers", len(r.Evidence))
}

// checkInvented looks for what evidence says in what it points at.
func checkInvented(r *abi.RetrieveResult, sent []exchange) outcome {
	raw, _ := rawValue(r)
	for i, e := range r.Evidence {
		item, ok := jsonpointer.Find(raw, e.Pointer)
		if !ok {
			continue // the part about pointers tells
		}
		if e.Score != nil && !anywhere(item, isNumber(*e.Score)) && !isParallelScore(raw, e.Pointer, *e.Score) {
			return failed("evidence %d: the score %v is neither in the item at %s nor in a list beside it", i, *e.Score,
				e.Pointer)
		}
		for field, t := range map[string]string{"created_at": e.CreatedAt, "updated_at": e.UpdatedAt,
			"valid_at": e.ValidAt, "invalid_at": e.InvalidAt, "expired_at": e.ExpiredAt} {
			if t != "" && !anywhereInside(item, func(v any) bool {
				return sameTime(v, t) || e.Span != nil && inProse(v, e.Span, t)
			}) {
				return failed("evidence %d: %s %s is not in the item at %s", i, field, t, e.Pointer)
			}
		}
		if e.Text != "" && !anywhere(item, func(v any) bool {
			text, ok := v.(string)
			return ok && strings.Contains(text, e.Text)
		}) {
			return failed("evidence %d: its text is not in the item at %s", i, e.Pointer)
		}
		if e.NativeID != "" && len(sent) > 0 && !anywhere(raw, func(v any) bool {
			return fmt.Sprint(v) == e.NativeID
		}) && !wasRequested(sent, e.NativeID) {
			return failed("evidence %d: the id %q is neither in raw nor in a request", i, e.NativeID)
		}
	}
	return passed("%d items, nothing invented", len(r.Evidence))
}

// isNumber reports whether a value is a number.
func isNumber(f float64) func(any) bool {
	return func(v any) bool { n, ok := v.(json.Number); return ok && sameNumber(n, number(f)) }
}

// isParallelScore reports whether a score has the same index as the item, in another list of the same answer that is as
// long as the item's: {"edges": [...], "edge_scores": [...]}.
func isParallelScore(raw any, pointer string, score float64) bool {
	listAt, place, ok := cutLast(pointer)
	answerAt, _, ok2 := cutLast(listAt)
	if !ok || !ok2 {
		return false
	}
	i, err := strconv.Atoi(place)
	found, _ := jsonpointer.Find(raw, listAt)
	list, isList := found.([]any)
	answer, _ := jsonpointer.Find(raw, answerAt)
	lists, isObject := answer.(map[string]any)
	if err != nil || !isList || !isObject {
		return false
	}
	for _, other := range lists {
		if scores, ok := other.([]any); ok && len(scores) == len(list) && i >= 0 && i < len(scores) &&
			isNumber(score)(scores[i]) {
			return true
		}
	}
	return false
}

// cutLast takes the last part off a JSON Pointer.
func cutLast(pointer string) (before, last string, ok bool) {
	i := strings.LastIndexByte(pointer, '/')
	if i < 0 {
		return "", "", false
	}
	return pointer[:i], pointer[i+1:], true
}

func number(f float64) json.Number {
	text, _ := json.Marshal(f)
	return json.Number(text)
}

// sameTime compares a value with a time: the same text, the same moment, or seconds or milliseconds since 1970.
func sameTime(v any, want string) bool {
	if v == want {
		return true
	}
	moment, err := time.Parse(time.RFC3339Nano, want)
	if err != nil {
		return false
	}
	switch x := v.(type) {
	case string:
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999",
			"2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02"} {
			if t, err := time.Parse(layout, x); err == nil && t.Equal(moment) {
				return true
			}
		}
	case json.Number:
		f, err := x.Float64()
		return err == nil && (int64(f) == moment.Unix() || int64(f) == moment.UnixMilli())
	}
	return false
}

// inProse reports whether a part of a text contains a time, with a T or a blank between date and time of day, in UTC.
func inProse(v any, span *abi.Span, want string) bool {
	text, isText := v.(string)
	moment, err := time.Parse(time.RFC3339Nano, want)
	if !isText || err != nil || span.Start < 0 || span.Start > span.End || span.End > int64(len(text)) {
		return false
	}
	part := text[span.Start:span.End]
	return strings.Contains(part, moment.UTC().Format("2006-01-02 15:04:05")) ||
		strings.Contains(part, moment.UTC().Format("2006-01-02T15:04:05"))
}

// wasRequested reports whether an id was part of a request.
func wasRequested(sent []exchange, id string) bool {
	for _, x := range sent {
		if x.carries(id) {
			return true
		}
	}
	return false
}

// traceOfItems compares the trace's summary with the evidence.
func traceOfItems(r *abi.RetrieveResult) outcome {
	t := r.Trace
	if t.ResultState == abi.ResultEmpty && len(r.Evidence) > 0 || t.ResultState == abi.ResultResults &&
		len(r.Evidence) == 0 {
		return failed("result_state %s with %d items", t.ResultState, len(r.Evidence))
	}
	if t.RetrievedCount != nil && len(r.Evidence) > 0 && *t.RetrievedCount < int64(len(r.Evidence)) {
		return failed("retrieved_count %d with %d items", *t.RetrievedCount, len(r.Evidence))
	}
	if t.TopScore != nil {
		for _, e := range r.Evidence {
			if e.Score != nil && *e.Score == *t.TopScore {
				return passed("%s, %d items, top score %v", t.ResultState, len(r.Evidence), *t.TopScore)
			}
		}
		return failed("top_score %v is no item's", *t.TopScore)
	}
	return passed("%s, %d items", t.ResultState, len(r.Evidence))
}
