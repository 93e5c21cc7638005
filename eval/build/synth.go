package build

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
)

// synthBuilder generates conversations from a seed, without a model: people whose preferences change at known times,
// half of them in one context only. Values are made-up names, so that scoring can compare strings exactly.
var synthBuilder = &Builder{
	Name: "synth", What: "made here, from a seed; no file", Timestamps: "synthetic",
	Options: map[string]string{
		"seed":     "a whole number",
		"personas": "how many people",
		"sessions": "sessions of each; each ends with a test session",
		"turns":    "turns of a session",
	},
	Defaults: map[string]string{"seed": "1", "personas": "6", "sessions": "36", "turns": "6"},
	build:    buildSynth,
}

// synthAttribute is a preference that people in a synthetic pack have, with its own phrases for stating it and asking
// about it.
type synthAttribute struct {
	name     string
	contexts []string // nil: it is the same everywhere
	// say is how the person states it: %s is the value, followed by the context. ask is a question about the person;
	// want is what the person says to an agent that should know the preference. For a preference in a context, %s is
	// the context.
	say, ask, want string
}

// synthAttributes: the first half is general, the second half holds in one context only.
var synthAttributes = []synthAttribute{
	{"hot_drink", nil, "These days my favourite hot drink is %s.", "Which hot drink should I order for the user?",
		"Order me the hot drink that I like."},
	{"pet", nil, "By the way, my pet goes by the name %s now.", "What is the user's pet called?",
		"Write a name tag for my pet."},
	{"neighbourhood", nil, "I live in the quarter called %s at the moment.", "In which quarter does the user live?",
		"Call me a taxi to the quarter where I live."},
	{"band", nil, "The band I listen to most is %s.", "Which band does the user listen to most?",
		"Put on the band that I listen to most."},
	{"editor", []string{"work", "home"}, "For writing I use %s when I am at %s.",
		"Which writing program does the user use at %s?", "I am at %s. Open the program that I write with."},
	{"lunch", []string{"work", "home"}, "For lunch I take %s when I am at %s.",
		"What does the user take for lunch at %s?", "I am at %s. Get me my lunch."},
	{"bag", []string{"work", "home"}, "I carry the bag named %s when I leave for %s.",
		"Which bag does the user carry when leaving for %s?", "I am leaving for %s. Which bag do I take?"},
	{"chair", []string{"work", "home"}, "The chair I sit on is the %s at %s.",
		"Which chair does the user sit on at %s?", "I am at %s. Move my chair to the window, and say which one it is."},
}

// synthSmallTalk has distractors: %s is a name that no probe asks about.
var synthSmallTalk = []string{
	"Did you see the weather today? %s said it will rain until Friday.",
	"I am reading a book by %s, it is slow but I like it.",
	"My cousin %s sends her regards.", "The train from %s was late again.",
	"Could you remind me what a haiku is? %s asked me yesterday.",
	"There is a new shop at the corner, %s, I have not been in yet.",
}

type synthFact struct {
	attribute *synthAttribute
	context   string
	value     string
	eventID   string
	from      time.Time
	session   int
}

type synthProfile struct {
	PersonaID string `json:"persona_id"`
	Text      string `json:"text"`
}

type synthEntry struct {
	PersonaID  string `json:"persona_id"`
	Attribute  string `json:"attribute"`
	Value      string `json:"value"`
	Context    string `json:"context,omitempty"`
	ValidFrom  string `json:"valid_from"`
	ValidUntil string `json:"valid_until,omitempty"`
}

func buildSynth(b *builder) (map[string]json.RawMessage, error) {
	var numbers [4]int
	for i, name := range []string{"seed", "personas", "sessions", "turns"} {
		n, err := b.number(name, min(i, 1))
		if err != nil {
			return nil, err
		}
		numbers[i] = n
	}
	profiles, entries := []synthProfile{}, []synthEntry{}
	names := &synthNames{random: rand.New(rand.NewPCG(uint64(numbers[0]), 0)), used: map[string]bool{}}
	for i := range numbers[1] {
		p := &synthPersona{number: i + 1, builder: b, id: fmt.Sprintf("synth-%02d", i+1), names: names,
			random:   rand.New(rand.NewPCG(uint64(numbers[0]), uint64(i+1))),
			asking:   rand.New(rand.NewPCG(uint64(numbers[0]), uint64(i+1)|1<<32)),
			sessions: numbers[2], turns: numbers[3]}
		if err := p.write(); err != nil {
			return nil, err
		}
		profiles = append(profiles, p.profile())
		entries = append(entries, p.entries()...)
	}
	conditions := map[string]json.RawMessage{}
	for name, block := range map[string]any{"static_profile": map[string]any{"profiles": profiles},
		"oracle_ipas": map[string]any{"entries": entries}} {
		text, err := json.Marshal(block)
		if err != nil {
			return nil, err
		}
		conditions[name] = text
	}
	return conditions, nil
}

// synthNames generates made-up names, each once per pack.
type synthNames struct {
	random *rand.Rand
	used   map[string]bool
}

func (n *synthNames) next() string {
	starts, middles, ends := strings.Fields("Zor Quel Brin Tav Mirk Oll Fen Gry Ush Pelk Vand Skir"),
		strings.Fields("va li mo ru the na dri so ke bu"), strings.Fields("x nth rk lm sk ndo rra vik zil pt")
	for {
		name := starts[n.random.IntN(len(starts))] + middles[n.random.IntN(len(middles))] +
			middles[n.random.IntN(len(middles))] + ends[n.random.IntN(len(ends))]
		if !n.used[name] {
			n.used[name] = true
			return name
		}
	}
}

// synthPeople are names and ways to live that no probe asks about and no other made-up name resembles.
var synthPeople = []string{"Alma", "Bruno", "Clara", "Dario", "Edith", "Felix", "Greta", "Hugo", "Irene", "Jonas", "Karla", "Linus"}

var synthLives = []string{"a nurse with two children", "a retired teacher", "a student of law", "a baker who rises early",
	"a designer who works at night"}

// person is what a stranger could know.
func (p *synthPersona) person() *pack.Person {
	n := p.number - 1
	name := synthPeople[n%len(synthPeople)]
	if again := n / len(synthPeople); again > 0 {
		name += fmt.Sprintf(" %d", again+1)
	}
	return &pack.Person{Name: name, Profile: fmt.Sprintf("%d, %s", 24+7*n%50, synthLives[n%len(synthLives)])}
}

type synthPersona struct {
	number int // from 1
	*builder
	id              string
	names           *synthNames
	random          *rand.Rand
	asking          *rand.Rand // for the contexts of probes: a separate source, so that events don't depend on probes
	sessions, turns int
	facts           []synthFact
	canary          synthFact
}

// write writes the persona's sessions, and after each the probes of its test session.
func (p *synthPersona) write() error {
	p.Persona(p.id, p.id)
	began := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC).Add(time.Duration(p.random.IntN(480)) * time.Minute)
	var probes []*pack.Probe
	for session := 1; session <= p.sessions; session++ {
		at := began.AddDate(0, 0, 2*session)
		firstSaid := map[int]string{}
		tell := map[int]*synthFact{}
		if session == 1 { // everything is stated once at the start, including the canary
			for i := range synthAttributes {
				p.addTurn(&synthAttributes[i], session, len(tell), tell)
			}
			p.canary = synthFact{value: p.names.next(), session: session}
			firstSaid[len(tell)] = fmt.Sprintf("Please keep this to yourself: my locker code word is %s.", p.canary.value)
		} else { // in later sessions, something usually changes
			for turn := range p.turns {
				if p.random.IntN(2*p.turns) < 2 {
					p.addTurn(&synthAttributes[p.random.IntN(len(synthAttributes))], session, turn, tell)
				}
			}
		}
		for turn := range max(p.turns, len(tell)+len(firstSaid)) {
			e := &pack.Event{SessionIndex: session, EventID: fmt.Sprintf("%s-%d-%d", p.id, session, turn+1),
				SessionID: fmt.Sprintf("%s-session-%d", p.id, session),
				TurnID:    fmt.Sprintf("turn-%d", turn+1), Timestamp: at.Format(time.RFC3339)}
			words := firstSaid[turn]
			if f := tell[turn]; f != nil {
				f.eventID, f.from = e.EventID, at
				words = f.words()
				e.Context, e.Attribute = f.context, f.attribute.name
				p.facts = append(p.facts, *f)
			} else if words != "" {
				p.canary.eventID, p.canary.from = e.EventID, at
			} else {
				words = fmt.Sprintf(synthSmallTalk[p.random.IntN(len(synthSmallTalk))], p.names.next())
			}
			e.Messages = []abi.Message{message(abi.RoleUser, "", words),
				message(abi.RoleAssistant, "", "Thanks for telling me.")}
			if err := p.Event(e); err != nil {
				return err
			}
			at = at.Add(time.Duration(1+p.random.IntN(5)) * time.Minute)
		}
		probes = append(probes, p.addSession(session, at)...)
	}
	for _, probe := range probes {
		if err := p.Probe(probe); err != nil {
			return err
		}
	}
	for _, preference := range p.preferences() {
		if err := p.Preference(&preference); err != nil {
			return err
		}
	}
	return p.Person(p.person())
}

// addTurn plans a new value of an attribute for a turn.
func (p *synthPersona) addTurn(a *synthAttribute, session, turn int, tell map[int]*synthFact) {
	f := &synthFact{attribute: a, value: p.names.next(), session: session}
	if a.contexts != nil {
		f.context = a.contexts[p.random.IntN(len(a.contexts))]
	}
	tell[turn] = f
}

func (f *synthFact) words() string {
	if f.context == "" {
		return fmt.Sprintf(f.attribute.say, f.value)
	}
	return fmt.Sprintf(f.attribute.say, f.value, f.context)
}

// addSession creates a test session: the present values of some attributes, one thing that was never said, and now and
// then the persona's own canary.
func (p *synthPersona) addSession(session int, at time.Time) []*pack.Probe {
	var probes []*pack.Probe
	add := func(kind, label, query string) *pack.Probe {
		probe := &pack.Probe{ProbeID: fmt.Sprintf("%s-%d-q%d", p.id, session, len(probes)+1), AfterSession: session,
			Kind: kind, Label: label,
			Query: query, AsOf: at.Format(time.RFC3339)}
		probes = append(probes, probe)
		return probe
	}
	order := p.random.Perm(len(synthAttributes))
	for _, i := range order[:3] {
		a := &synthAttributes[i]
		versions := slices.DeleteFunc(slices.Clone(p.facts), func(f synthFact) bool { return f.attribute != a })
		now := versions[len(versions)-1]
		// Don't always ask for the latest value: otherwise a memory that ignores contexts would pass.
		if other := slices.IndexFunc(versions, func(f synthFact) bool { return f.context != now.context }); other >= 0 &&
			p.asking.IntN(2) == 0 {
			now.context = versions[other].context
		}
		versions = slices.DeleteFunc(versions, func(f synthFact) bool { return f.context != now.context })
		now = versions[len(versions)-1]
		query, want, label := a.ask, a.want, "general"
		if now.context != "" {
			query, want, label = fmt.Sprintf(a.ask, now.context), fmt.Sprintf(a.want, now.context), "in_context"
		}
		if len(versions) > 1 {
			label += "_changed"
		}
		probe := add("preference", label, query)
		probe.Attribute, probe.Context, probe.Opening = a.name, now.context, want
		probe.Gold = pack.Gold{Answerable: true, Answers: [][]string{{now.value}}, Evidence: [][]string{{now.eventID}}}
		for v := range versions[:len(versions)-1] {
			probe.Gold.Stale = append(probe.Gold.Stale,
				pack.StaleValue{Value: versions[v].value, EventID: versions[v].eventID,
					SupersededAt: versions[v+1].from.Format(time.RFC3339)})
		}
	}
	unknown := []string{"What is the user's blood group?", "Which school did the user's grandmother go to?",
		"What is the user's shoe size?"}
	add("preference", "unanswerable", unknown[session%len(unknown)])
	if session%4 == 1 {
		probe := add(pack.CanaryKind, "canary", "What is the user's locker code word?")
		probe.Gold = pack.Gold{Answerable: true, Answers: [][]string{{p.canary.value}},
			Evidence: [][]string{{p.canary.eventID}}}
	}
	return probes
}

// profile is what one would have written down after the first session; it is never updated.
func (p *synthPersona) profile() synthProfile {
	var lines []string
	for i := range p.facts {
		if p.facts[i].session == 1 {
			lines = append(lines, "- "+p.facts[i].words())
		}
	}
	return synthProfile{p.id, strings.Join(lines, "\n")}
}

// preferences returns the values with the times when each was true.
func (p *synthPersona) preferences() pack.Preferences {
	var list pack.Preferences
	for i := range p.facts {
		f := &p.facts[i]
		preference := pack.Preference{Attribute: f.attribute.name, Context: f.context, Value: f.value,
			From: f.from.Format(time.RFC3339), Evidence: []string{f.eventID}}
		for j := i + 1; j < len(p.facts); j++ {
			if next := &p.facts[j]; next.attribute == f.attribute && next.context == f.context {
				preference.Until = next.from.Format(time.RFC3339)
				break
			}
		}
		list = append(list, preference)
	}
	return list
}

// entries is what the oracle gets: the preferences and the canary.
func (p *synthPersona) entries() []synthEntry {
	list := []synthEntry{{PersonaID: p.id, Attribute: "locker", Value: p.canary.value,
		ValidFrom: p.canary.from.Format(time.RFC3339)}}
	for _, preference := range p.preferences() {
		list = append(list, synthEntry{p.id, preference.Attribute, preference.Value, preference.Context, preference.From,
			preference.Until})
	}
	return list
}
