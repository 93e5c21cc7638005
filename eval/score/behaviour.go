package score

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/simulate"
)

// minReplicates is the minimum number of replicates for a verdict on behaviour, because an agent's answers vary.
const minReplicates = 3

const noAgent = "behaviour was not measured: no agent talked with people here"

// conversation is one conversation of a subject that is being measured.
type conversation struct {
	*journal.Transcript
	setting *simulate.Setting
	shown   string // what was retrieved before the first answer: a simulate.Use, or NotRetrieved
	first   string // the first answer; empty if there was none
	use     simulate.Use
	most    float64 // how many corrections a person makes before they give up
}

func newConversation(p *probe, t *journal.Transcript, patience int) *conversation {
	c := &conversation{Transcript: t, setting: p.setting, most: float64(max(1, patience-1))}
	c.first = t.First()
	c.use = p.setting.UseOf(c.first)
	return c
}

// retrieved reports whether the subject retrieved before its first answer.
func (c *conversation) retrieved() bool {
	return slices.ContainsFunc(c.Retrievals, func(r journal.Retrieval) bool { return r.Turn <= 1 && r.Error == nil })
}

// leaked reports whether the user named the preference in force before the subject had answered. Later texts follow an
// answer, even if it is empty.
func (c *conversation) leaked() bool {
	return len(c.Exchanges) > 0 && simulate.Names(c.Exchanges[0].User, c.setting.Value)
}

func (p *probe) hasPreference() bool { return p.setting.Value != "" }
func (p *probe) ofContexts() bool    { return p.setting.Differs && !p.setting.Changed() }
func (p *probe) ofChange() bool      { return p.setting.Changed() && !p.setting.Differs }
func (p *probe) ofBoth() bool        { return p.setting.Changed() && p.setting.Differs }

// talkedAbout reports whether a person knows the right answer.
func (p *probe) talkedAbout() bool { return p.hasPreference() || p.unanswerable() }

// neverMentioned reports whether the history says nothing about what the probe asks.
func (p *probe) neverMentioned() bool { return p.setting.Value == "" && p.unanswerable() }

// sessionsSince is how many sessions ago the value in force was stated; 0 for the session just before the test session.
func (p *probe) sessionsSince() int {
	first := 0
	for _, id := range p.setting.Preference.Evidence {
		if e := p.persona.events[id]; e != nil && (first == 0 || e.session < first) {
			first = e.session
		}
	}
	return p.AfterSession - first
}

// talked adds one conversation.
func (w *walk) talked(l *journal.Line) error {
	t := l.Transcript
	if w.excluded[t.ProbeID] {
		return nil
	}
	p, at := w.probe[t.ProbeID], slices.Index(w.budgets, t.Budget)
	if p == nil || at < 0 {
		return wrong("cell %s/%d, line %d: a conversation about probe %q with budget %d, which is not one of the pack and the "+
			"lab", w.Label, w.Replicate, l.N, t.ProbeID, t.Budget)
	}
	c := newConversation(p, t, w.patience)
	if err := w.show(c); err != nil {
		return err
	}
	r := &reading{values: newValues(), pending: w.pending[sessionKey{l.PersonaID, l.Session}], leaked: c.leaked()}
	if t.Ended != journal.EndedSimulator { // it says nothing about the agent: it is missing
		for i := range metrics {
			if m := &metrics[i]; m.behave != nil && m.applies(p) {
				r.values[i] = m.behave(c)
			}
		}
		w.conversations[at][p.number] = r
	}
	w.behaviour.add(c)
	return nil
}

// show determines what the subject had retrieved before its first answer.
func (w *walk) show(c *conversation) error {
	c.shown = NotRetrieved
	if !c.retrieved() {
		return nil
	}
	var texts []string
	for _, r := range c.Retrievals {
		if r.Turn > 1 || r.Error != nil {
			continue
		}
		text, err := w.context(r.ContextSHA256)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	c.shown = string(c.setting.UseOf(strings.Join(texts, "\n")))
	return nil
}

// NotRetrieved is the value of Explained.Retrieved for sessions in which the agent retrieved nothing before its first
// answer.
const NotRetrieved = "not_retrieved"

// Explained counts sessions with a preference in force, by the values in what the agent retrieved before its first
// answer, and by the values in this answer. Both are a simulate.Use; Retrieved may also be NotRetrieved.
type Explained struct {
	Retrieved string `json:"retrieved"`
	Used      string `json:"used"`
	Count     int    `json:"count"`
}

// Behaviour counts the conversations of a column, over all replicates and budgets.
type Behaviour struct {
	Conversations int `json:"conversations"`
	// NoRetrieval counts those in which the agent retrieved nothing before its first answer. They are scored like the
	// others. Where the simulator failed, the agent may not have been asked: these are not counted.
	NoRetrieval int `json:"no_retrieval"`
	// GivenUp counts those that ended without success.
	GivenUp int `json:"given_up"`
	// Failed counts those that ended because the agent hung, exited or sent something unreadable. SimulatorFailed
	// counts those in which the person's model did; they are missing.
	Failed          int `json:"failed"`
	SimulatorFailed int `json:"simulator_failed"`
	// Leaked counts conversations that are excluded for all columns, because the person named the preference first in
	// this one or in the same conversation of another column.
	Leaked int `json:"leaked"`
	// Stub counts how many of Answers came from a stand-in for a model.
	Answers int `json:"answers"`
	Stub    int `json:"stub"`
	// Seats are the ways in which the agent was connected, Simulators who played the person, NotSent what the agent
	// cannot pass to a retrieval.
	Seats      []Count `json:"seats"`
	Simulators []Count `json:"simulators"`
	NotSent    []Count `json:"not_sent"`
	// Failures has why the agent failed, the first few different reasons.
	Failures []string `json:"failures,omitempty"`
	// Told counts those in which the agent got the user's name and profile.
	Told int `json:"told,omitempty"`
	// Feedback counts corrections that were passed to apply_feedback, by status or class of error; such a column is
	// compared with none that only accumulates.
	Feedback []Count `json:"feedback,omitempty"`
	// Breached is how many conversations had at least one breach; Breaches counts all by kind; Details has the first
	// few as "probe: kind: detail".
	Breached int      `json:"breached"`
	Breaches []Count  `json:"breaches"`
	Details  []string `json:"details"`
	// Explained is sorted by what was retrieved, and then by what was used.
	Explained []Explained `json:"explained"`
	// Since is pet by the number of sessions since the change, for each budget.
	Since []SinceCurve `json:"pet_since"`
}

// SinceCurve is pet and pet_stale by the number of sessions since the change.
type SinceCurve struct {
	Budget int64   `json:"budget"`
	Bins   []Since `json:"bins"`
}

// Since is one bin: From to To sessions (inclusive; nil means no end) after the session in which the value was stated.
type Since struct {
	From  int    `json:"from"`
	To    *int   `json:"to"`
	PET   Figure `json:"pet"`
	Stale Figure `json:"pet_stale"`
}

// maxReasons is how many reasons of failed conversations are shown.
const maxReasons = 3

// behaviourCounts counts conversations.
type behaviourCounts struct {
	Behaviour
	seats, simulators, notSent, breaches, feedback, failures map[string]int
	explained                                                map[Explained]int // without their counts
	broken                                                   map[string]bool   // conversations of one cell
}

func newBehaved() *behaviourCounts {
	return &behaviourCounts{Behaviour: Behaviour{Details: []string{}, Since: []SinceCurve{}}, seats: map[string]int{},
		simulators: map[string]int{}, notSent: map[string]int{}, breaches: map[string]int{}, feedback: map[string]int{}, failures: map[string]int{},
		explained: map[Explained]int{}, broken: map[string]bool{}}
}

func (b *behaviourCounts) add(c *conversation) {
	b.Conversations++
	b.NoRetrieval += int(yes(!c.retrieved() && c.Ended != journal.EndedSimulator))
	b.GivenUp += int(yes(c.Ended == journal.EndedGivenUp || c.Ended == journal.EndedTurns))
	b.Failed += int(yes(c.Ended == journal.EndedSubject))
	b.SimulatorFailed += int(yes(c.Ended == journal.EndedSimulator))
	if c.Ended == journal.EndedSubject && c.Error != nil {
		b.failures[fmt.Sprintf("%.300s", c.Error.Message)]++
	}
	if c.setting.Value != "" && c.Ended != journal.EndedSimulator {
		b.explained[Explained{Retrieved: c.shown, Used: string(c.use)}]++
	}
	for _, x := range c.Exchanges {
		b.Answers += int(yes(x.Agent != ""))
		b.Stub += int(yes(x.Stub))
	}
	b.Told += int(yes(c.Told != ""))
	b.seats[cmp.Or(c.Seat, "not said")]++
	b.simulators[cmp.Or(c.Simulator, "not said")]++
	for _, label := range c.NotSent {
		b.notSent[label]++
	}
	for _, x := range c.Breaches {
		b.late(&journal.LateBreach{ProbeID: c.ProbeID, Budget: c.Budget, Breach: x})
	}
}

// passed counts a correction that was passed on.
func (b *behaviourCounts) passed(f *journal.Feedback) {
	if f.Error != nil {
		b.feedback["error "+string(f.Error.Code)]++
		return
	}
	b.feedback[f.Status]++
}

// late counts a breach, which may be found after its conversation.
func (b *behaviourCounts) late(x *journal.LateBreach) {
	of := fmt.Sprint(x.ProbeID, " ", x.Budget)
	b.Breached += int(yes(!b.broken[of]))
	b.broken[of] = true
	b.breaches[x.Kind]++
	b.Details = append(b.Details, strings.TrimSuffix(x.ProbeID+": "+x.Kind+": "+x.Detail, ": "))
}

// merge adds another cell's counts.
func (b *behaviourCounts) merge(o *behaviourCounts) {
	b.Conversations += o.Conversations
	b.NoRetrieval += o.NoRetrieval
	b.GivenUp += o.GivenUp
	b.Failed += o.Failed
	b.SimulatorFailed += o.SimulatorFailed
	b.Answers += o.Answers
	b.Stub += o.Stub
	b.Breached += o.Breached
	b.Told += o.Told
	b.Details = append(b.Details, o.Details...)
	for key, n := range o.explained {
		b.explained[key] += n
	}
	for into, from := range map[*map[string]int]map[string]int{&b.seats: o.seats, &b.simulators: o.simulators,
		&b.notSent: o.notSent, &b.breaches: o.breaches, &b.feedback: o.feedback,
		&b.failures: o.failures} {
		for name, n := range from {
			(*into)[name] += n
		}
	}
}

// behave sums up a column's conversations; nil if there are none.
func (c *column) behave() *Behaviour {
	sum := newBehaved()
	for _, cell := range c.cells {
		if cell.behaviour != nil {
			sum.merge(cell.behaviour)
		}
		for _, readings := range cell.conversations {
			for _, r := range readings {
				sum.Leaked += int(yes(r != nil && r.leaked))
			}
		}
	}
	if sum.Conversations == 0 {
		return nil
	}
	slices.Sort(sum.Details)
	sum.Details = sum.Details[:min(len(sum.Details), maxExamples)]
	sum.Seats, sum.Simulators = counted(sum.seats), counted(sum.simulators)
	sum.NotSent, sum.Breaches = counted(sum.notSent), counted(sum.breaches)
	for _, reason := range slices.Sorted(maps.Keys(sum.failures)) {
		if len(sum.Failures) < maxReasons {
			sum.Failures = append(sum.Failures, reason)
		}
	}
	if len(sum.feedback) > 0 {
		sum.Feedback = counted(sum.feedback)
	}
	sum.Explained = []Explained{}
	for key, n := range sum.explained {
		key.Count = n
		sum.Explained = append(sum.Explained, key)
	}
	slices.SortFunc(sum.Explained, func(a, b Explained) int {
		return cmp.Or(cmp.Compare(a.Retrieved, b.Retrieved), cmp.Compare(a.Used, b.Used))
	})
	return &sum.Behaviour
}

// spreadLeaks excludes a conversation in which the user leaked the preference from all columns: otherwise one of them
// would have an easier task.
func (s *scorer) spreadLeaks() {
	type key struct{ at, probe, replicate int }
	leaked := map[key]bool{}
	each := func(do func(key, *reading)) {
		for _, c := range s.columns {
			for _, cell := range c.cells {
				for at, readings := range cell.conversations {
					for n, r := range readings {
						if r != nil {
							s.hasConversations = true
							do(key{at, n, cell.Replicate}, r)
						}
					}
				}
			}
		}
	}
	each(func(k key, r *reading) { leaked[k] = leaked[k] || r.leaked })
	each(func(k key, r *reading) { r.leaked = leaked[k] })
}

// sinceEdges are the lower bounds of SinceCurve's bins, in sessions.
var sinceEdges = []int{0, 1, 3, 6, 12}

// since computes pet by the number of sessions since the change.
func (c *column) since(at int, budget int64) SinceCurve {
	curve := SinceCurve{Budget: budget, Bins: []Since{}}
	pet, stale := place["pet"], place["pet_stale"]
	for i, from := range sinceEdges {
		bin := Since{From: from}
		if i+1 < len(sinceEdges) {
			to := sinceEdges[i+1] - 1
			bin.To = &to
		}
		part := slice{kind: "since", name: fmt.Sprint(from)}
		for _, p := range c.probes {
			if p.ofChange() {
				if n := p.sessionsSince(); n >= from && (bin.To == nil || n <= *bin.To) {
					part.probes = append(part.probes, p)
				}
			}
		}
		if len(part.probes) == 0 {
			continue
		}
		bin.PET = c.figure(&metrics[pet], pet, at, budget, part)
		bin.Stale = c.figure(&metrics[stale], stale, at, budget, part)
		curve.Bins = append(curve.Bins, bin)
	}
	return curve
}

// withConversations counts the column's replicates with a conversation at a budget.
func (c *column) withConversations(at int) int {
	n := 0
	for _, cell := range c.cells {
		if slices.ContainsFunc(cell.conversations[at], func(r *reading) bool { return r != nil }) {
			n++
		}
	}
	return n
}

// Sessions counts a pack's conversations by what they can show. Neither headline counts the other's.
type Sessions struct {
	CS   int `json:"cs"`
	PET  int `json:"pet"`
	Both int `json:"both"`
	// Plain counts those with one value that never changed; Unknown those with none in force.
	Plain   int `json:"plain"`
	Unknown int `json:"unknown"`
}

// countSessions counts the probes of a pack with preferences; nil for a pack without.
func (t *timeline) countSessions() *Sessions {
	if t.pack.Manifest.Counts.Preferences == 0 {
		return nil
	}
	n := &Sessions{}
	for _, p := range t.probes {
		switch {
		case !p.hasPreference():
			n.Unknown++
		case p.ofBoth():
			n.Both++
		case p.ofContexts():
			n.CS++
		case p.ofChange():
			n.PET++
		default:
			n.Plain++
		}
	}
	return n
}

// behaviourNotes adds what a reader must know about the conversations before looking at figures.
func (s *scorer) behaviourNotes(m *Metrics, add func(string, ...any)) {
	if s.hasConversations && s.pack.Manifest.Counts.Preferences == 0 {
		add("the pack says nothing about preferences: CS and PET are not computed")
	}
	stub, answers := 0, 0
	for i := range m.Columns {
		if b := m.Columns[i].Behaviour; b != nil {
			stub, answers = stub+b.Stub, answers+b.Answers
		}
	}
	if stub > 0 {
		add("A STUB TOOK THE PLACE OF A MODEL IN %d OF %d ANSWERS: NOTHING HERE SAYS ANYTHING ABOUT BEHAVIOUR", stub, answers)
	}
	for i := range m.Columns {
		b := m.Columns[i].Behaviour
		if b == nil {
			continue
		}
		label := m.Columns[i].Label
		if b.Told > 0 {
			add("%s: the agent was told the person's name and profile in %d of %d sessions", label, b.Told, b.Conversations)
		}
		if m.Columns[i].Feedback {
			var parts []string
			for _, x := range b.Feedback {
				parts = append(parts, fmt.Sprintf("%s %d", x.Name, x.Count))
			}
			add("%s: the person's corrections were passed to apply_feedback (%s); it is compared with no memory that only accumulates",
				label, cmp.Or(strings.Join(parts, ", "), "there were none"))
		}
		if b.NoRetrieval > 0 {
			add("%s: no retrieval in %d of %d sessions; they count as the agent answered", label, b.NoRetrieval, b.Conversations)
		}
		if b.Failed > 0 {
			add("%s: the agent failed in %d of %d sessions; they count as it answered: %s", label, b.Failed, b.Conversations,
				strings.Join(b.Failures, "; "))
		}
		if b.SimulatorFailed > 0 {
			add("%s: the simulator failed in %d of %d sessions; they are missing, not wrong", label, b.SimulatorFailed,
				b.Conversations)
		}
		if b.Leaked > 0 {
			add("%s: %d sessions count for no column: a simulated person named the preference before the agent had acted", label,
				b.Leaked)
		}
		if b.Breached > 0 {
			add("%s: the agent broke the wall in %d of %d sessions: %s", label, b.Breached, b.Conversations,
				strings.Join(b.Details, "; "))
		}
		for _, what := range b.NotSent {
			add("%s: the agent cannot send its %s with a retrieval (%d sessions)", label, what.Name, what.Count)
		}
	}
}
