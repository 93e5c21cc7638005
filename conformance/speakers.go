package conformance

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
)

// speakers records one event with two named people. If the context shows what one of them said, it must name that
// person, or the receipt or trace must warn speaker_lost.
func (b *bench) speakers() outcome {
	s, tell := b.scope("speakers", "p"), b.kit.target.Probe.Wordings[0]
	people, facts := []string{b.kit.names.name(), b.kit.names.name()}, []string{b.kit.names.name(), b.kit.names.name()}
	e := b.event(s, "")
	e.Messages = nil
	for i, name := range people {
		said := tell(facts[i])
		e.Messages = append(e.Messages, abi.Message{Role: abi.RoleUser, Name: name, Content: &said})
	}
	receipt, err := b.record(b.ctx, e)
	if err != nil {
		return refused("record_event of two people", err)
	}
	if o := b.wait(s); o != nil {
		return *o
	}
	r, err := b.ask(s)
	if err != nil {
		return refused("retrieve", err)
	}
	if !shows(r, facts[0]) && !shows(r, facts[1]) {
		return notChecked("nothing of the event is shown")
	}
	warned := slices.ContainsFunc(append(slices.Clone(receipt.Warnings), r.Trace.Warnings...), func(w string) bool {
		return strings.HasPrefix(w, abi.WarnSpeakerLost+":")
	})
	for i, fact := range facts {
		if shows(r, fact) && !shows(r, people[i]) {
			switch {
			case warned:
				return passed("the speakers are lost, and a warning says so")
			case !slices.ContainsFunc(r.Evidence, func(e abi.Evidence) bool { return e.Shown != nil }):
				return notChecked(beforeShown)
			}
			return failed("%s said %q, the context shows it and names nobody (%s), and there is no warning %s", people[i],
				tell(fact), short(r.FormattedContext, 300), abi.WarnSpeakerLost)
		}
	}
	return passed("the context names who said what")
}
