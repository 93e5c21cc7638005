package conformance

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/jsonpointer"
)

// selector is a way to say what is to be forgotten.
type selector struct {
	name, words string
	// fill puts what selects gone, and not kept, into a request. Not empty: why that is not possible.
	fill func(gone, kept *plantedFact, r *abi.ForgetRequest) string
}

func selectors() []selector {
	return []selector{
		{"session", "forgetting a session removes what was said in it, and nothing else",
			func(p, _ *plantedFact, r *abi.ForgetRequest) string { r.SessionID = p.events[0].SessionID; return "" }},
		{"range", "forgetting a range of time removes what lies in it, its ends included, and nothing else",
			func(p, _ *plantedFact, r *abi.ForgetRequest) string {
				at, _ := time.Parse(time.RFC3339, p.events[0].Timestamp)
				r.From = at.In(time.FixedZone("", 5*3600+1800)).Format(time.RFC3339)
				r.To = at.UTC().Format(time.RFC3339)
				return ""
			}},
		{"native_ids", "forgetting items by their native ids removes them, and nothing else",
			func(p, kept *plantedFact, r *abi.ForgetRequest) string {
				// An item of both facts, as an entity that both mention, would take both with it.
				shared := nativeIDs(kept)
				r.NativeIDs = slices.DeleteFunc(nativeIDs(p), func(id string) bool { return slices.Contains(shared, id) })
				if len(r.NativeIDs) == 0 {
					return "neither receipts nor answers have final native ids"
				}
				return ""
			}},
		{"prefix", "forgetting an event removes no event whose id begins as its id does",
			func(p, _ *plantedFact, r *abi.ForgetRequest) string { r.EventIDs = eventIDs(p); return "" }},
	}
}

// forgetBy checks each selector of a forget request, in a separate scope, all at once: some backends let a scope wait
// for seconds after something was removed from it.
func (b *bench) forgetBy() {
	list := selectors()
	found := make([]outcome, len(list)+1)
	misses := b.wire.misses()
	parallel(len(found), 5, func(i int) {
		if i < len(list) {
			found[i] = b.forgetOne(list[i])
		} else {
			found[i] = b.forgetSeveral()
		}
	})
	missed := b.wire.misses() > misses
	for i, sel := range list {
		b.note(sel.name, sel.words, found[i], missed)
	}
	b.note("several", "forgetting several events removes them all", found[len(list)], missed)
}

// forgetOne forgets one of two facts whose event ids and times are next to each other.
func (b *bench) forgetOne(sel selector) outcome {
	s := b.scope("forget_"+sel.name, "p")
	session := b.session()
	gone := b.plantWith(s, func(e *abi.MemoryEvent) {
		e.SessionID, e.Timestamp = session, "2026-03-01T10:30:00Z"
	})
	n := 0
	kept := b.plantWith(s, func(e *abi.MemoryEvent) {
		e.Timestamp = "2026-03-01T10:30:01Z"
		if n < len(gone.events) {
			e.EventID = gone.events[n].EventID + "0"
		}
		n++
	})
	if o := control(gone, kept); o != nil {
		return *o
	}
	r := &abi.ForgetRequest{Scope: s, Reason: "conformance kit"}
	if why := sel.fill(gone, kept, r); why != "" {
		return notChecked("%s", why)
	}
	return b.forgetAs(r, []*plantedFact{gone}, kept)
}

// forgetSeveral forgets two facts of three.
func (b *bench) forgetSeveral() outcome {
	s := b.scope("forget_several", "p")
	first, second, kept := b.plant(s), b.plant(s), b.plant(s)
	if o := control(first, second, kept); o != nil {
		return *o
	}
	r := &abi.ForgetRequest{Scope: s, Reason: "conformance kit", EventIDs: append(eventIDs(first), eventIDs(second)...)}
	return b.forgetAs(r, []*plantedFact{first, second}, kept)
}

// forgetAs forgets and looks for what should be gone, and for what should not.
func (b *bench) forgetAs(r *abi.ForgetRequest, gone []*plantedFact, kept *plantedFact) outcome {
	receipt, err := b.slot.Forget(b.ctx, r)
	switch {
	case err != nil && abi.CodeOf(err) == abi.CodeUnsupported:
		return notChecked("unsupported")
	case err != nil:
		return refused("forget", err)
	case receipt.Status != abi.ForgetDone:
		return notChecked("%s: the receipt says so", receipt.Status)
	}
	for _, p := range gone {
		for _, look := range []struct {
			part string
			o    outcome
		}{{"retrieve", b.checkForgotten(p, receipt)}, {"provenance", b.untraceable(p, receipt)}} {
			switch {
			case look.o.verdict.Green():
			case look.o.lacks && b.declares(look.part):
				return notChecked("the manifest declares that something may remain: %s", look.o.reason)
			default:
				look.o.lacks = false
				return look.o
			}
		}
	}
	result, err := b.ask(kept.scope)
	switch {
	case err != nil:
		return refused("retrieve", err)
	case !holds(result, kept.name):
		return failed("%s was not to be forgotten, and is not found any more", kept.name)
	}
	return passed("removed: %v", receipt.Removed)
}

// declares reports whether the manifest says that a part of this clause does not apply.
func (b *bench) declares(part string) bool {
	return slices.ContainsFunc(b.declared, func(d abi.NotApplicable) bool {
		return d.Clause == int64(b.report.Number) && (d.Part == part || d.Part == "")
	})
}

func eventIDs(p *plantedFact) (ids []string) {
	for _, e := range p.events {
		ids = append(ids, e.EventID)
	}
	return ids
}

// nativeIDs are the final ids of a fact: those of its receipts, or else of the evidence that has its name.
func nativeIDs(p *plantedFact) (ids []string) {
	for _, r := range p.receipts {
		if r.NativeIDsKind == abi.NativeIDsFinal {
			ids = append(ids, r.NativeIDs...)
		}
	}
	if p.found == nil || len(ids) > 0 {
		return ids
	}
	for _, e := range p.found.Evidence {
		if e.NativeID != "" && strings.Contains(strings.ToLower(e.Text), strings.ToLower(p.name)) {
			ids = append(ids, e.NativeID)
		}
	}
	return ids
}

// checkProvenance is a part of clause 8: the provenance of an event, of a time range and of an item, in a finite number
// of pages.
func (b *bench) checkProvenance() outcome {
	if !b.can(abi.OpProvenance) {
		return notChecked("the provider has no provenance")
	}
	s := b.scope("traced", "p")
	mine, other := b.plant(s), b.plant(s)
	if o := control(mine, other); o != nil {
		return *o
	}
	ask := func(r abi.ProvenanceRequest) (*abi.Provenance, *outcome) {
		r.Scope = s
		found, err := b.slot.Provenance(b.ctx, &r)
		switch code := abi.CodeOf(err); {
		case err == nil:
			return found, nil
		case code == abi.CodeUnsupported || code == abi.CodeNotFound || code == abi.CodeInvalidArgument:
			return nil, nil
		}
		o := refused("provenance", err)
		return nil, &o
	}
	has := func(i *abi.ProvenanceItem, name string) bool {
		return strings.Contains(strings.ToLower(string(i.Native)+i.Evidence.Text), strings.ToLower(name))
	}
	found, o := ask(abi.ProvenanceRequest{EventID: mine.events[0].EventID, Limit: 50})
	if o != nil {
		return *o
	}
	var native string
	if found != nil {
		for i := range found.Items {
			it := &found.Items[i]
			from := it.Evidence.SourceEventIDs
			switch {
			case has(it, other.name) && !has(it, mine.name):
				return failed("asked for event %q it gives %s, which was told in another event", mine.events[0].EventID,
					other.name)
			case len(from) > 0 && !slices.Contains(from, mine.events[0].EventID):
				return failed("asked for event %q it gives an item of the events %q", mine.events[0].EventID, from)
			}
			native = it.Evidence.NativeID
		}
	}
	for what, r := range map[string]abi.ProvenanceRequest{"an event that was never recorded": {EventID: "kit-none", Limit: 50},
		"a time when nothing was recorded": {From: "2001-01-01T00:00:00Z", To: "2001-01-02T00:00:00Z", Limit: 50}} {
		none, o := ask(r)
		if o != nil {
			return *o
		}
		if none != nil && slices.ContainsFunc(none.Items, func(i abi.ProvenanceItem) bool {
			return has(&i, mine.name) || has(&i, other.name)
		}) {
			return failed("asked for %s it gives a fact", what)
		}
	}
	if native != "" {
		one, o := ask(abi.ProvenanceRequest{NativeID: native, Limit: 50})
		if o != nil {
			return *o
		}
		if one != nil && slices.ContainsFunc(one.Items, func(i abi.ProvenanceItem) bool {
			return has(&i, other.name) && !has(&i, mine.name)
		}) {
			return failed("asked for the item %q it gives %s of another one", native, other.name)
		}
	}
	return b.pages(ask, mine, has)
}

// pages reads all that came of a long time, item by item.
func (b *bench) pages(ask func(abi.ProvenanceRequest) (*abi.Provenance, *outcome), mine *plantedFact,
	has func(*abi.ProvenanceItem, string) bool) outcome {
	r := abi.ProvenanceRequest{From: "2020-01-01T00:00:00Z", To: b.kit.options.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)}
	r.Limit = 100
	whole, o := ask(r)
	if o != nil {
		return *o
	}
	if whole != nil && whole.NextCursor != "" {
		next := r
		next.Cursor = whole.NextCursor
		more, o := ask(next)
		switch {
		case o != nil:
			return *o
		case more == nil:
			return failed("it gives the cursor %q, and refuses it", whole.NextCursor)
		}
		for i := range whole.Items {
			if slices.ContainsFunc(more.Items, func(x abi.ProvenanceItem) bool {
				return x.Evidence.NativeID == whole.Items[i].Evidence.NativeID && sameJSON(x.Native, whole.Items[i].Native)
			}) {
				return failed("the item %s is on two pages: the cursor %q leads back",
					short(string(whole.Items[i].Native), 80), whole.NextCursor)
			}
		}
	}
	if whole == nil || len(whole.Items) == 0 || whole.NextCursor != "" {
		return passed("by event; by time it gives nothing, or more than 100 items")
	}
	r.Limit = 1
	seen, held := map[string]bool{}, false
	for n := 0; ; n++ {
		page, o := ask(r)
		switch {
		case o != nil:
			return *o
		case page == nil:
			return failed("page %d of 1 item is refused, and a page of 100 is not", n+1)
		case len(page.Items) > 1:
			return failed("limit 1, and a page has %d items", len(page.Items))
		}
		for i := range page.Items {
			key := page.Items[i].Evidence.NativeID + string(page.Items[i].Native)
			if seen[key] {
				return failed("the item %s is on two pages: the cursor %q comes back", short(key, 80), r.Cursor)
			}
			seen[key] = true
			held = held || has(&page.Items[i], mine.name)
		}
		if r.Cursor = page.NextCursor; r.Cursor == "" {
			break
		}
		if n > len(whole.Items)+2 {
			return failed("after %d pages of 1 item there is still a cursor, and one page of 100 has %d items", n+1,
				len(whole.Items))
		}
	}
	if len(seen) != len(whole.Items) {
		return failed("pages of 1 have %d items, one of 100 has %d", len(seen), len(whole.Items))
	}
	return passed("%d items, page by page", len(seen))
}

// sources compares what evidence says of events with the turns of which the text speaks.
func (b *bench) sources() outcome {
	s := b.scope("sources", "p")
	facts := []*plantedFact{b.plant(s), b.plant(s), b.plant(s)}
	if o := control(facts...); o != nil {
		return *o
	}
	r, err := b.ask(s)
	if err != nil {
		return refused("retrieve", err)
	}
	raw, _ := rawValue(r)
	for _, p := range facts {
		if mentions(r, p.name) == 0 {
			continue
		}
		pointed := false
		for i, e := range r.Evidence {
			text := strings.ToLower(e.Text + evidenceItem(raw, &e))
			if !strings.Contains(text, strings.ToLower(p.name)) {
				continue
			}
			pointed = true
			if hasNoOtherName(text, p, facts) && len(e.SourceEventIDs) > 0 && !slices.ContainsFunc(e.SourceEventIDs, func(id string) bool {
				return slices.Contains(eventIDs(p), id)
			}) {
				return failed("evidence %d has %s, which was told in %q, and says that it came of %q", i, p.name,
					eventIDs(p), e.SourceEventIDs)
			}
			if why := otherID(raw, r, i); why != "" {
				return failed("evidence %d: %s", i, why)
			}
		}
		if !pointed && len(r.Evidence) > 0 {
			return failed("raw has %s, and no evidence points at it", p.name)
		}
	}
	return passed("%d items", len(r.Evidence))
}

// evidenceItem is what an evidence points at, as text.
func evidenceItem(raw any, e *abi.Evidence) string {
	item, _ := jsonpointer.Find(raw, e.Pointer)
	text, _ := json.Marshal(item)
	return string(text)
}

// hasNoOtherName reports whether a text has no other fact's name.
func hasNoOtherName(text string, p *plantedFact, facts []*plantedFact) bool {
	for _, other := range facts {
		if other != p && strings.Contains(text, strings.ToLower(other.name)) {
			return false
		}
	}
	return true
}

// otherID says that an evidence has the id of an item that another evidence points at.
func otherID(raw any, r *abi.RetrieveResult, at int) string {
	e := r.Evidence[at]
	own, _ := jsonpointer.Find(raw, e.Pointer)
	isID := func(v any) bool { s, ok := v.(string); return ok && s == e.NativeID }
	if e.NativeID == "" || anywhere(own, isID) {
		return ""
	}
	for i, other := range r.Evidence {
		item, _ := jsonpointer.Find(raw, other.Pointer)
		if i != at && other.Pointer != e.Pointer && anywhere(item, isID) {
			return "its id " + e.NativeID + " is of the item at " + other.Pointer
		}
	}
	return ""
}
