package conformance

import (
	"slices"

	"github.com/memhost/memhost/abi"
)

// checkLabels is clause 9.
func checkLabels(b *bench) {
	s := b.scope("labels", "p")
	tell := func(context string) *plantedFact {
		return b.plantWith(s, func(e *abi.MemoryEvent) {
			e.Scenario, e.Context, e.Attribute = "kitscenario", context, "kitattribute"
		})
	}
	b.part("speakers", "what named people said is shown with their names, or a warning says that the speaker is lost",
		b.speakers)
	mark := b.wire.mark()
	home, office := tell("kithome"), tell("kitoffice")
	written := b.wire.since(mark)
	request := func(context string) *abi.RetrieveRequest {
		return &abi.RetrieveRequest{Query: b.kit.target.Probe.Question, Scope: s, Scenario: "kitscenario",
			Context: context, Attribute: "kitattribute"}
	}
	mark = b.wire.mark()
	result, err := b.retrieve(request("kithome"))
	read := b.wire.since(mark)
	b.part("said", "filter_mode and filters_applied say of each label how it was applied", func() outcome {
		if err != nil {
			return refused("retrieve with labels", err)
		}
		return checkLabelModes(result.Trace)
	})
	if err != nil {
		return
	}
	applied := result.Trace.FiltersApplied
	b.part("sent", "a label that is applied stands in a native request, and was recorded with the turn",
		func() outcome {
			return labelsSent(applied, read, written, home)
		})
	b.part("hard", "what is called hard filters", func() outcome {
		return b.hardFilters(applied, home, office, request)
	})
	b.part("as_of", "as_of is honoured, or said to be ignored", func() outcome { return b.asOf(home, request) })
	b.part("cross_context", "cross_context asks that the context is not used, and it is not", func() outcome {
		return b.crossContext(office, request)
	})
}

// checkLabelModes checks that the trace uses the contract's words.
func checkLabelModes(t *abi.Trace) outcome {
	strongest := "none"
	for _, label := range []string{"scenario", "context", "attribute"} {
		how := t.FiltersApplied[label]
		if !slices.Contains([]string{"hard", "hard_session", "semantic", "none", "unverified"}, how) {
			return failed("filters_applied says %q of %s, want hard, hard_session, semantic, none or unverified", how,
				label)
		}
		switch how {
		case "hard", "hard_session", "unverified":
			strongest = "hard"
		case "semantic":
			if strongest == "none" {
				strongest = "semantic"
			}
		}
	}
	switch {
	case !slices.Contains([]abi.FilterMode{abi.FilterHard, abi.FilterSemantic, abi.FilterNone}, t.FilterMode):
		return failed("filter_mode is %q, want hard, semantic or none", t.FilterMode)
	case t.FilterMode == abi.FilterHard && strongest != "hard", t.FilterMode == abi.FilterSemantic &&
		strongest == "none":
		return failed("filter_mode is %s, and filters_applied says %v", t.FilterMode, t.FiltersApplied)
	}
	return passed("%s: %v", t.FilterMode, t.FiltersApplied)
}

// labelsSent looks for the labels in what the host sent.
func labelsSent(applied map[string]string, read, written []exchange, home *plantedFact) outcome {
	values := map[string]string{"scenario": "kitscenario", "context": "kithome", "attribute": "kitattribute"}
	if len(read) == 0 {
		return notChecked("no native call was made: the provider answers from its own state")
	}
	var used []string
	for _, label := range abi.SortedKeys(applied) {
		how, value := applied[label], values[label]
		if value == "" || how == "none" {
			continue
		}
		used = append(used, label)
		if how != "hard_session" && !slices.ContainsFunc(read, func(x exchange) bool { return x.carries(value) }) {
			return failed("%s is said to be %s, and %q is in no request of the question (%s)", label, how, value,
				routesOf(read))
		}
		if home.retained() && len(changes(written)) > 0 && !slices.ContainsFunc(written, func(x exchange) bool {
			return x.carries(value)
		}) {
			return failed("%s is said to be %s, and %q was not recorded with the turn (%s)", label, how, value,
				routesOf(changes(written)))
		}
	}
	return passed("applied: %v", used)
}

// hardFilters asks in both contexts.
func (b *bench) hardFilters(applied map[string]string, home, office *plantedFact,
	request func(string) *abi.RetrieveRequest) outcome {
	if how := applied["context"]; how != "hard" && how != "hard_session" {
		return passed("context is %s, and said to be", how)
	}
	for _, ask := range []struct {
		context   string
		has, lack *plantedFact
	}{{"kithome", home, office}, {"kitoffice", office, home}} {
		r, err := b.retrieve(request(ask.context))
		switch {
		case err != nil:
			return refused("retrieve with labels", err)
		case holds(r, ask.lack.name):
			return failed("context is said to be hard; %s was told in another one, and found in %s", ask.lack.name,
				ask.context)
		case ask.has.found != nil && !holds(r, ask.has.name):
			return failed("%s was told in the context %s, and is not found in it", ask.has.name, ask.context)
		}
	}
	if o := control(home, office); o != nil && o.verdict != NotApplicable {
		return *o
	}
	return passed("each context finds its own")
}

// asOf asks as of a time before anything was recorded.
func (b *bench) asOf(home *plantedFact, request func(string) *abi.RetrieveRequest) outcome {
	q := request("kithome")
	q.AsOf = "2001-01-01T00:00:00Z"
	r, err := b.retrieve(q)
	switch {
	case abi.CodeOf(err) == abi.CodeUnsupported:
		return passed("unsupported")
	case err != nil:
		return refused("retrieve with as_of", err)
	case r.Trace.AsOfMode != "native" && r.Trace.AsOfMode != "ignored":
		return failed("as_of_mode is %q, want native or ignored", r.Trace.AsOfMode)
	case r.Trace.AsOfMode == "native" && holds(r, home.name):
		return failed("as_of_mode is native, and as of %s it finds %s, which was told later", q.AsOf, home.name)
	}
	return passed("%s", r.Trace.AsOfMode)
}

// crossContext asks in one context for a fact recorded in another.
func (b *bench) crossContext(office *plantedFact, request func(string) *abi.RetrieveRequest) outcome {
	q := request("kithome")
	q.Filters = map[string]abi.Raw{"cross_context": abi.Raw("true")}
	r, err := b.retrieve(q)
	if err != nil {
		return refused("retrieve with cross_context", err)
	}
	if how := r.Trace.FiltersApplied["context"]; how != "" && how != "none" {
		return failed("filters_applied says that context was %s", how)
	}
	if office.found != nil && !holds(r, office.name) {
		return failed("%s was told in another context, and cross_context does not find it", office.name)
	}
	if o := control(office); o != nil && o.verdict != NotApplicable {
		return *o
	}
	return passed("the context was not used")
}
