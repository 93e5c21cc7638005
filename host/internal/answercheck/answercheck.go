// Package answercheck validates what guests answer. It rejects violations of the contract: a missing required field, an
// unknown word, a negative count, a rank below 1, a pointer to nothing. Fields that the host fills in are not checked.
// Each check returns what is wrong, or "".
package answercheck

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/internal/text/jsonpointer"
)

// The possible answers of find_event.
const (
	FoundPresent = "present"
	FoundPartial = "partial"
	FoundAbsent  = "absent"
	FoundUnknown = "unknown"
)

// ConsistencyImmediate is the consistency model of a backend whose acknowledged writes can be read at once.
const ConsistencyImmediate = "immediate"

// Wrong checks a decoded answer.
func Wrong(answer abi.Decodable) string {
	switch x := answer.(type) {
	case *abi.SetupReceipt:
		return wrongTrace(x.Trace)
	case *abi.WriteReceipt:
		return WrongReceipt(x)
	case *abi.RetrieveResult:
		return wrongResult(x)
	case *abi.FormatResult:
		return cmp.Or(wrongCount("token_count", &x.TokenCount), wrongShown(x.Evidence, x.FormattedContext))
	case *abi.ResetReceipt:
		return wrongReset(x)
	case *abi.BackendHealth:
		return wrongHealth(x)
	case *abi.BackendReadiness:
		return wrongWord("status", x.Status, abi.ReadinessReady, abi.ReadinessPending, abi.ReadinessDegraded,
			abi.ReadinessFailed, abi.ReadinessUnknown)
	case *abi.FindEventAnswer:
		return cmp.Or(wrongWord("found", x.Found, FoundPresent, FoundPartial, FoundAbsent, FoundUnknown),
			wrongCount("retry_after_ms", x.RetryAfterMS))
	case *abi.Inventory:
		for i := range x.Kinds {
			if wrong := wrongCount(fmt.Sprintf("kinds[%d].count", i), &x.Kinds[i].Count); wrong != "" {
				return wrong
			}
		}
		return wrongTrace(x.Trace)
	case *abi.Provenance:
		return wrongTrace(x.Trace)
	case *abi.NativeQueryResult:
		return wrongTrace(x.Trace)
	case *abi.MutationReceipt:
		return cmp.Or(wrongWord("status", x.Status, "applied", "no_change", "rejected"), wrongTrace(x.Trace))
	case *abi.FeedbackReceipt:
		return cmp.Or(wrongWord("status", x.Status, "applied", "no_change", "queued"), wrongTrace(x.Trace))
	case *abi.ForgetReceipt:
		return cmp.Or(wrongWord("status", x.Status, abi.ForgetDone, abi.ForgetInProgress, abi.ForgetPartial,
			abi.ForgetUnsupported), wrongTrace(x.Trace))
	}
	return ""
}

// WrongReceipt checks the receipt of a write. It does not accept skipped_read_only, which only the host may answer.
func WrongReceipt(r *abi.WriteReceipt) string {
	return cmp.Or(
		wrongWord("receipt.status", r.Status, abi.StatusCommitted, abi.StatusQueued, abi.StatusPending,
			abi.StatusPartial,
			abi.StatusUncertain, abi.StatusNotRetained),
		wrongWord("receipt.native_ids_kind", r.NativeIDsKind, abi.NativeIDsFinal, abi.NativeIDsTransient,
			abi.NativeIDsNone),
		wrongCount("receipt.stored_count", r.StoredCount),
		wrongTrace(r.Trace))
}

func wrongReset(r *abi.ResetReceipt) string {
	for kind, n := range r.Removed {
		if wrong := wrongCount(fmt.Sprintf("removed[%.80q]", kind), n); wrong != "" {
			return wrong
		}
	}
	return cmp.Or(wrongWord("status", r.Status, abi.ResetDone, abi.ResetInProgress, abi.ResetIncomplete,
		abi.ResetFailed), wrongTrace(r.Trace))
}

// wrongHealth checks only the status if the backend is unavailable.
func wrongHealth(h *abi.BackendHealth) string {
	wrong := wrongWord("status", h.Status, abi.HealthOK, abi.HealthDegraded, abi.HealthUnavailable)
	if wrong != "" || h.Status == abi.HealthUnavailable {
		return wrong
	}
	return cmp.Or(
		wrongWord("consistency_model", h.ConsistencyModel, ConsistencyImmediate, "eventual", "async_derived"),
		wrongWord("isolation", h.Isolation, "hard", "filtered", "unverified"),
		wrongWord("pet_observability", h.PetObservability, "strong", "partial", "weak"))
}

func wrongResult(r *abi.RetrieveResult) string {
	for i := range r.Evidence {
		e := &r.Evidence[i]
		switch {
		case e.Rank < 1:
			return fmt.Sprintf("evidence[%d].rank is %d, want 1 or more", i, e.Rank)
		case e.Pointer == "":
			return fmt.Sprintf("evidence[%d].pointer is missing", i)
		}
		wrong := wrongWord(fmt.Sprintf("evidence[%d].time_basis", i), cmp.Or(e.TimeBasis, abi.TimeEvent), abi.TimeEvent,
			abi.TimeIngest, abi.TimeDerived)
		if wrong != "" {
			return wrong
		}
	}
	if i := dangling(&r.Raw, r.Evidence); i >= 0 {
		return fmt.Sprintf("evidence[%d].pointer %.200q points to nothing in raw", i, r.Evidence[i].Pointer)
	}
	return cmp.Or(wrongShown(r.Evidence, r.FormattedContext), wrongTrace(r.Trace))
}

// wrongShown checks that the ranges which evidence marks as shown are within the text.
func wrongShown(evidence []abi.Evidence, text string) string {
	for i := range evidence {
		s := evidence[i].Shown
		if s != nil && (s.Start < 0 || s.End < s.Start || s.End > int64(len(text))) {
			return fmt.Sprintf("evidence[%d].shown is %d to %d, and formatted_context has %d bytes", i, s.Start, s.End,
				len(text))
		}
	}
	return ""
}

// wrongTrace checks the guest's part of a trace. Absent members are allowed.
func wrongTrace(t *abi.Trace) string {
	if t == nil {
		return ""
	}
	for _, name := range abi.SortedKeys(t.BudgetApplied) {
		path, use := "trace.budget_applied."+name, t.BudgetApplied[name]
		wrong := cmp.Or(wrongWord(path+".how", use.How, "native", "fixed", "advisory", "formatter"),
			wrongCount(path+".sent", use.Sent), wrongCount(path+".received", use.Received),
			wrongCount(path+".shown", use.Shown))
		if wrong != "" {
			return wrong
		}
	}
	for _, name := range abi.SortedKeys(t.FiltersApplied) {
		wrong := wrongWord("trace.filters_applied."+name, t.FiltersApplied[name], "hard", "hard_session", "semantic",
			"none", "unverified")
		if wrong != "" {
			return wrong
		}
	}
	return cmp.Or(
		optionalWord("trace.result_state", t.ResultState, abi.ResultResults, abi.ResultEmpty, abi.ResultDegraded,
			abi.ResultUnknown),
		optionalWord("trace.filter_mode", t.FilterMode, abi.FilterHard, abi.FilterSemantic, abi.FilterNone),
		optionalWord("trace.time_basis", t.TimeBasis, abi.TimeEvent, abi.TimeIngest, abi.TimeDerived),
		optionalWord("trace.as_of_mode", t.AsOfMode, "native", "ignored"),
		wrongCount("trace.frame_tokens", t.FrameTokens), wrongCount("trace.retrieved_count", t.RetrievedCount),
		wrongCount("trace.budget_shortfall", t.BudgetShortfall))
}

func optionalWord[T ~string](path string, is T, list ...T) string {
	if is == "" {
		return ""
	}
	return wrongWord(path, is, list...)
}

func wrongWord[T ~string](path string, is T, list ...T) string {
	if slices.Contains(list, is) {
		return ""
	}
	words := make([]string, len(list))
	for i := range list {
		words[i] = string(list[i])
	}
	return fmt.Sprintf("%s %.80q is not one of %s", path, string(is), strings.Join(words, ", "))
}

func wrongCount(path string, n *int64) string {
	if n == nil || *n >= 0 {
		return ""
	}
	return fmt.Sprintf("%s is %d, want 0 or more", path, *n)
}

// branch is a node in a tree of JSON Pointers: the tokens that may follow.
type branch struct {
	next  map[string]*branch
	found bool
}

func (b *branch) add(pointer string) *branch {
	for _, token := range strings.Split(pointer[1:], "/") {
		token = jsonpointer.Unescape(token)
		if b.next == nil {
			b.next = map[string]*branch{}
		}
		if b.next[token] == nil {
			b.next[token] = &branch{}
		}
		b = b.next[token]
	}
	return b
}

// walk marks, in one pass, which pointers exist in the value that d is at.
func (b *branch) walk(d *wirejson.Decoder) error {
	b.found = true
	switch {
	case len(b.next) > 0 && d.Next() == wirejson.Object:
		return d.Obj(func(d *wirejson.Decoder, key string) error {
			if next := b.next[key]; next != nil {
				return next.walk(d)
			}
			return d.Skip()
		})
	case len(b.next) > 0 && d.Next() == wirejson.Array:
		i := 0
		return d.Arr(func(d *wirejson.Decoder) error {
			next := b.next[strconv.Itoa(i)]
			i++
			if next != nil {
				return next.walk(d)
			}
			return d.Skip()
		})
	}
	return d.Skip()
}

// dangling returns the index of the first evidence whose pointer leads to nothing in raw; -1 if there is none.
func dangling(raw *abi.RawResult, evidence []abi.Evidence) int {
	root := &branch{}
	leaves := make([]*branch, len(evidence))
	for i := range evidence {
		if !strings.HasPrefix(evidence[i].Pointer, "/") {
			return i
		}
		leaves[i] = root.add(evidence[i].Pointer)
	}
	if calls := root.next["calls"]; calls != nil {
		calls.found = true
		for i := range raw.Calls {
			call := calls.next[strconv.Itoa(i)]
			if call == nil {
				continue
			}
			call.found = true
			if route := call.next["route"]; route != nil {
				route.found = true
			}
			call.walkInto("body", raw.Calls[i].Body)
		}
	}
	if notes := root.next["notes"]; notes != nil {
		notes.found = raw.Notes != nil
		for name, value := range raw.Notes {
			notes.walkInto(name, value)
		}
	}
	return slices.IndexFunc(leaves, func(leaf *branch) bool { return !leaf.found })
}

// walkInto walks a member that is raw JSON. In invalid JSON no pointer exists.
func (b *branch) walkInto(name string, value abi.Raw) {
	if next := b.next[name]; next != nil && len(value) > 0 {
		_ = next.walk(wirejson.DecodeBytes(value))
	}
}

// WarnContextEscaped is the code of the warning that a context contained tags which its provider had not escaped.
const WarnContextEscaped = "context_escaped"

// hostWarnings are the codes that only the host may use.
var hostWarnings = []string{abi.WarnMemoryPending, abi.WarnBudgetUnused, WarnContextEscaped,
	"memory_lost", "delivery_uncertain",
	"delivery_found", "read_only",
	"reset_unfinished", "readiness_partial"}

// DropHostCodes removes warnings from a guest's answer that use the host's codes.
func DropHostCodes(answer abi.Decodable) {
	var trace *abi.Trace
	switch x := answer.(type) {
	case *abi.SetupReceipt:
		trace, x.Warnings = x.Trace, withoutHostCodes(x.Warnings)
	case *abi.WriteReceipt:
		trace, x.Warnings = x.Trace, withoutHostCodes(x.Warnings)
	case *abi.BatchReceipts:
		for i := range x.Receipts {
			if r := x.Receipts[i].Receipt; r != nil {
				DropHostCodes(r)
			}
		}
	case *abi.RetrieveResult:
		trace = x.Trace
	case *abi.ResetReceipt:
		trace, x.Warnings = x.Trace, withoutHostCodes(x.Warnings)
	case *abi.BackendHealth:
		x.Warnings = withoutHostCodes(x.Warnings)
	case *abi.BackendReadiness:
		x.Warnings = withoutHostCodes(x.Warnings)
	case *abi.FeedbackReceipt:
		trace, x.Warnings = x.Trace, withoutHostCodes(x.Warnings)
	}
	if trace != nil {
		trace.Warnings = withoutHostCodes(trace.Warnings)
	}
}

func withoutHostCodes(warnings []string) []string {
	return slices.DeleteFunc(warnings, func(w string) bool {
		code, _, _ := strings.Cut(w, ":")
		return slices.Contains(hostWarnings, code)
	})
}

// Every context that is not empty starts and ends with these.
const (
	elementOpen = "<" + abi.ContextTag + " "
	elementEnd  = "</" + abi.ContextTag + ">"
)

// NotOneElement rejects a text that is neither empty nor exactly one memory-context element. EscapeInside handles tags
// inside the element.
func NotOneElement(text string) string {
	if text == "" || len(text) >= len(elementOpen+elementEnd) && strings.HasPrefix(text, elementOpen) &&
		strings.HasSuffix(text, elementEnd) {
		return ""
	}
	return fmt.Sprintf("does not begin with %q and end with %q", elementOpen, elementEnd)
}

// EscapeInside escapes the tags inside an element that NotOneElement accepted, and adjusts the positions of shown items
// in evidence. It returns the text and the number of tags. Such tags come from modules that were built with an older
// list of look-alikes.
func EscapeInside(text string, evidence []abi.Evidence) (string, int) {
	if text == "" {
		return "", 0
	}
	inside := text[len(elementOpen) : len(text)-len(elementEnd)]
	escaped, inserted := escapeTags(inside)
	if len(inserted) == 0 {
		return text, 0
	}
	for i := range evidence {
		if s := evidence[i].Shown; s != nil {
			start, end := s.Start, s.End
			for _, at := range inserted {
				at += int64(len(elementOpen))
				if at <= start {
					s.Start++
				}
				if at < end || at <= start {
					s.End++
				}
			}
		}
	}
	return elementOpen + escaped + elementEnd, len(inserted)
}

// escapeTags puts a backslash into each tag in text, and returns the positions in text before which it inserted them.
func escapeTags(text string) (escaped string, inserted []int64) {
	var b strings.Builder
	done := 0
	for {
		n := abi.NextContextTag(text[done:], false)
		if n < 0 {
			b.WriteString(text[done:])
			return b.String(), inserted
		}
		b.WriteString(text[done : done+n])
		b.WriteByte('\\')
		done += n
		inserted = append(inserted, int64(done))
	}
}

// CutToFit removes as few whole lines as possible from the end of an element to make fits accept it, and adjusts
// evidence that was shown there. It returns the text, or "" if no line is left, and the number of removed lines.
func CutToFit(text string, evidence []abi.Evidence, fits func(text string) bool) (cut string, removed int) {
	open := len(openingTag(text))
	if strings.HasPrefix(text[open:], "\n") {
		open++
	}
	var ends []int // of all lines except the last
	last := len(text) - len(elementEnd) - 1
	for at := open; ; {
		n := strings.IndexByte(text[at:max(at, last)], '\n')
		if n < 0 {
			break
		}
		at += n + 1
		ends = append(ends, at)
	}
	slices.Reverse(ends)
	removed = sort.Search(len(ends), func(i int) bool { return fits(text[:ends[i]] + elementEnd) })
	end := 0
	if removed < len(ends) {
		end = ends[removed]
		cut = text[:end] + elementEnd
	}
	removed++
	for i := range evidence {
		switch s := evidence[i].Shown; {
		case s == nil || s.End <= int64(end):
		case s.Start >= int64(end):
			evidence[i].Shown = nil
		default:
			s.End, s.Whole = int64(end), false
		}
	}
	return cut, removed
}

// WrongElement checks that the element around a formatted context names the provider (or the backend by its own name)
// and the scope.
//
//	<memory-context backend="mem0" scope="user_a_c1/user_a">
func WrongElement(text, provider, backendName string, scope abi.MemoryScope) string {
	if text == "" {
		return ""
	}
	tag := openingTag(text)
	backend, shown := attribute(tag, "backend"), attribute(tag, "scope")
	if backend != provider && (backend == "" || backend != backendName) {
		return fmt.Sprintf("formatted_context is of backend %.80q, this is %q", backend, provider)
	}
	if plain := lineEnds.Replace(scope.RunID + "/" + scope.PersonaID); lineEnds.Replace(shown) != plain {
		return fmt.Sprintf("formatted_context is of scope %.200q, this is %.200q", shown, plain)
	}
	return ""
}

// openingTag returns the tag at the start of an element.
func openingTag(text string) string {
	const end = `">`
	return text[:min(strings.Index(text, end)+len(end), len(text)-len(elementEnd))]
}

// lineEnds are replaced by spaces in an attribute.
var lineEnds = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ")

// attribute returns a double-quoted attribute of a tag; "" if it is missing.
func attribute(tag, name string) string {
	_, rest, _ := strings.Cut(tag, " "+name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return html.UnescapeString(value)
}
