package score

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/simulate"
	"github.com/memhost/memhost/eval/stats"
)

// timeline is what scoring keeps in memory about a pack: its probes, the position of each event, and the words of the
// evidence. Texts stay on disk.
type timeline struct {
	pack     *pack.Pack
	personas []*persona // in the pack's order
	byID     map[string]*persona
	probes   []*probe // in the pack's order
	probe    map[string]*probe
	events   int                 // number of events
	canaries map[uint64][]canary // by the hash of their first word
	excluded map[string]bool     // probes that an audit excludes
	// hasConversations means that the run has conversations of an agent, in which people give up after patience answers.
	hasConversations bool
	patience         int
}

// most is how often a person states what they want before they give up.
func (t *timeline) most() float64 { return float64(max(1, t.patience-1)) }

type persona struct {
	id, cluster string
	number      int
	events      map[string]*event
	probes      []*probe
}

// event is the position of an event, and what is needed from it.
type event struct {
	number  int // in the pack
	session int
	context string
	at      time.Time
	speaker string   // of its first message with a name
	content []uint64 // content words, if the event is evidence for a probe
	// said has the words of each of its messages in order, if the event is evidence for a probe.
	said []evidenceMessage
}

// canary is a marker that only occurs in one persona's events.
type canary struct {
	text  string // folded
	owner *persona
}

// probe is a probe with the data that its gold needs.
type probe struct {
	*pack.Probe
	persona *persona
	number  int
	asOf    time.Time
	speaker string
	// groups and sessions are the gold evidence as event ids and as sessions; both are empty if it is not answerable.
	groups   [][]string
	sessions [][]int
	// pairs are the groups extended by each member's neighbour, if the pack's events are single messages of a source
	// that is often split into pairs.
	pairs  [][]string
	chance rankScores // of sessions in random order
	// content has the words of each group's members, foreign those of another cluster's probe.
	content, foreign [][][]uint64
	answers          [][]*foldedText
	stale            []staleValue
	forbidden        []*foldedText
	setting          *simulate.Setting // of a conversation about the probe
}

type staleValue struct {
	value   *foldedText
	eventID string
	at      time.Time // when it was superseded
}

// needs reports whether one of the events that memory lacks is needed for the probe, or must not be shown: then no
// answer says anything about memory. If a text has no event, it may be in any of them.
func (p *probe) needs(lacking map[string]bool) bool {
	if len(lacking) == 0 {
		return false
	}
	for _, group := range p.groups {
		if slices.ContainsFunc(group, func(id string) bool { return lacking[id] }) {
			return true
		}
	}
	return p.hasForbidden() || slices.ContainsFunc(p.stale, func(s staleValue) bool { return s.eventID == "" || lacking[s.eventID] })
}

func everyProbe(*probe) bool { return true }

func (p *probe) hasEvidence() bool   { return len(p.groups) > 0 }
func (p *probe) hasPairs() bool      { return len(p.pairs) > 0 }
func (p *probe) hasSessions() bool   { return len(p.sessions) > 0 }
func (p *probe) hasWords() bool      { return len(p.content) > 0 }
func (p *probe) hasFalseWords() bool { return len(p.foreign) > 0 }
func (p *probe) hasAnswers() bool    { return len(p.answers) > 0 }
func (p *probe) hasForbidden() bool  { return len(p.forbidden) > 0 }
func (p *probe) hasStale() bool      { return len(p.stale) > 0 }
func (p *probe) hasContext() bool    { return p.Context != "" }
func (p *probe) unanswerable() bool  { return !p.Gold.Answerable }

// age is the time since the last change, in days.
func (p *probe) age() float64 {
	last := p.stale[0].at
	for _, s := range p.stale {
		if s.at.After(last) {
			last = s.at
		}
	}
	return days(last, p.asOf)
}

func days(from, to time.Time) float64 { return to.Sub(from).Hours() / 24 }

// readTimeline reads a pack once.
//
// Errors: those of the pack.
func readTimeline(p *pack.Pack, seed uint64, audit *pack.Audit) (*timeline, error) {
	t := &timeline{pack: p, byID: map[string]*persona{}, probe: map[string]*probe{}, canaries: map[uint64][]canary{},
		patience: simulate.DefaultTurns,
		excluded: map[string]bool{}}
	if audit != nil {
		for _, e := range audit.Excluded {
			t.excluded[e.ProbeID] = true
		}
	}
	for i, m := range p.Manifest.Personas {
		person := &persona{id: m.PersonaID, cluster: m.Cluster, number: i, events: map[string]*event{}}
		t.personas = append(t.personas, person)
		t.byID[person.id] = person
		if err := t.readPersona(person); err != nil {
			return nil, err
		}
	}
	t.drawForeign(seed)
	return t, nil
}

func (t *timeline) readPersona(person *persona) error {
	preferences, err := t.pack.Preferences(person.id)
	if err != nil {
		return err
	}
	evidence, partner := map[string]bool{}, map[string]string{}
	for row, err := range t.pack.Probes(person.id) {
		if err != nil {
			return err
		}
		if t.excluded[row.ProbeID] {
			continue
		}
		p := &probe{Probe: row, persona: person, number: len(t.probes), setting: simulate.NewSetting(row, preferences)}
		t.probes, person.probes = append(t.probes, p), append(person.probes, p)
		t.probe[p.ProbeID] = p
		for _, group := range row.Gold.Evidence {
			for _, id := range group {
				evidence[id] = true
			}
		}
		if row.Kind == pack.CanaryKind {
			t.addCanaries(p)
		}
	}
	ends := map[int]time.Time{} // of sessions
	holding := map[uint64]int{} // number of events that contain a word
	var evidenced []*pack.Event
	var before *pack.Event // the previous event
	nth := 0               // index in the session
	for row, err := range t.pack.Events(person.id) {
		if err != nil {
			return err
		}
		e := &event{number: t.events, session: row.SessionIndex, context: row.Context}
		e.at, _ = abi.ParseTime(row.Timestamp) // lint rejects a pack with invalid times
		for i := range row.Messages {
			if row.Messages[i].Name != "" && e.speaker == "" {
				e.speaker = row.Messages[i].Name
			}
		}
		if before == nil || before.SessionIndex != row.SessionIndex {
			nth = 0
		}
		if nth++; t.singleMessages() && nth%2 == 0 {
			partner[before.EventID], partner[row.EventID] = row.EventID, before.EventID
			if evidence[before.EventID] != evidence[row.EventID] {
				other := row
				if evidence[row.EventID] {
					other = before
				}
				evidenced = append(evidenced, other)
			}
		}
		before = row
		if evidence[row.EventID] {
			e.content = contentWords(eventText(row))
			evidenced = append(evidenced, row)
		}
		countEvents(holding, row)
		person.events[row.EventID] = e
		t.events++
		ends[e.session] = e.at
	}
	for _, row := range evidenced {
		person.events[row.EventID].said = evidenceWords(row, holding)
	}
	for _, p := range person.probes {
		p.prepare(ends[p.AfterSession])
		p.pairUp(partner)
	}
	return nil
}

// singleMessages reports whether the pack's events are single messages although its builder could have made pairs.
func (t *timeline) singleMessages() bool {
	return t.pack.Manifest.Builder.Options["group"] == "message"
}

// pairUp adds, to each member of the evidence, the message with which it would share an event.
func (p *probe) pairUp(partner map[string]string) {
	if len(partner) == 0 {
		return
	}
	for _, group := range p.groups {
		both := slices.Clone(group)
		for _, id := range group {
			if other := partner[id]; other != "" && !slices.Contains(both, other) {
				both = append(both, other)
			}
		}
		p.pairs = append(p.pairs, both)
	}
}

// eventText is the text of an event, one line per message.
func eventText(e *pack.Event) string {
	text := ""
	for i := range e.Messages {
		if m := &e.Messages[i]; m.Content != nil {
			text += *m.Content + "\n"
		}
	}
	return text
}

func (t *timeline) addCanaries(p *probe) {
	for _, group := range p.Gold.Answers {
		for _, text := range group {
			c := canary{fold(text).text, p.persona}
			first, found := uint64(0), false
			words(c.text, func(w word) {
				if !found {
					first, found = w.hash, true
				}
			})
			if found && !slices.Contains(t.canaries[first], c) {
				t.canaries[first] = append(t.canaries[first], c)
			}
		}
	}
}

// prepare computes what a probe needs. end is when the session before it ended, which is the question's time if it
// names none.
func (p *probe) prepare(end time.Time) {
	p.asOf = end
	if at, err := abi.ParseTime(p.AsOf); err == nil {
		p.asOf = at
	}
	if !p.Gold.Answerable {
		return
	}
	speakers := map[string]bool{}
	for _, group := range p.Gold.Evidence {
		var sessions []int
		var content [][]uint64
		for _, id := range group {
			e := p.persona.events[id]
			if e == nil { // a pack with dangling evidence only runs if the user insists
				continue
			}
			if !slices.Contains(sessions, e.session) {
				sessions = append(sessions, e.session)
			}
			if len(e.content) > 0 {
				content = append(content, e.content)
			}
			if e.speaker != "" {
				speakers[e.speaker] = true
			}
		}
		slices.Sort(sessions)
		p.groups = append(p.groups, group)
		if len(content) > 0 {
			p.content = append(p.content, content)
		}
		if len(sessions) > 0 && !slices.ContainsFunc(p.sessions,
			func(s []int) bool { return slices.Equal(s, sessions) }) {
			p.sessions = append(p.sessions, sessions)
		}
	}
	if len(p.groups) > 0 && len(p.sessions) == 0 { // all of it is dangling: session 0 is never served
		p.sessions = [][]int{{0}}
	}
	if len(p.sessions) > 0 {
		p.chance = chanceScores(p.sessions, max(p.AfterSession, 1))
	}
	switch len(speakers) {
	case 0:
	case 1:
		for name := range speakers {
			p.speaker = name
		}
	default:
		p.speaker = "several"
	}
	current := map[string]bool{}
	for _, group := range p.Gold.Answers {
		var list []*foldedText
		for _, text := range group {
			f := fold(text)
			list, current[f.text] = append(list, f), true
		}
		p.answers = append(p.answers, list)
	}
	for _, s := range p.Gold.Stale {
		f := fold(s.Value)
		if f.text != "" && current[f.text] { // it holds again
			continue
		}
		at, _ := abi.ParseTime(s.SupersededAt)
		p.stale = append(p.stale, staleValue{f, s.EventID, at})
	}
	for _, text := range p.Gold.Forbidden {
		p.forbidden = append(p.forbidden, fold(text.Text))
	}
}

// drawForeign assigns each probe the evidence of a probe from another cluster.
func (t *timeline) drawForeign(seed uint64) {
	var withWords []*probe
	clusters := map[string]bool{}
	for _, p := range t.probes {
		if p.hasWords() {
			withWords = append(withWords, p)
			clusters[p.persona.cluster] = true
		}
	}
	if len(clusters) < 2 {
		return
	}
	for _, p := range withWords {
		random := stats.Random(seed, "content_false/"+p.ProbeID)
		other := p
		for other.persona.cluster == p.persona.cluster {
			other = withWords[random.IntN(len(withWords))]
		}
		p.foreign = other.content
	}
}

// labels counts the probes by label.
func (t *timeline) labels() []Count {
	counts := map[string]int{}
	for _, p := range t.probes {
		counts[p.Label]++
	}
	return counted(counts)
}

// counted returns counts sorted by name.
func counted(counts map[string]int) []Count {
	list := []Count{}
	for _, name := range slices.SortedFunc(maps.Keys(counts), compareNames) {
		list = append(list, Count{name, counts[name]})
	}
	return list
}

// compareNames orders names, and numbers by value.
func compareNames(a, b string) int {
	x, errA := strconv.Atoi(a)
	y, errB := strconv.Atoi(b)
	if errA == nil && errB == nil {
		return x - y
	}
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
