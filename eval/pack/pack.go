// Package pack reads and writes packs. A pack is the timeline of an evaluation: what was said, in order, and what is
// asked after which session.
//
// A pack is a folder, or the same files in a .tar.zst:
//
//	pack.json        Manifest: where the data came from, how it was built, counts, the content's hash
//	events.jsonl     one Event a line; a persona's events are contiguous, its sessions in order, its time never backwards
//	probes.jsonl     one Probe a line; the probes of a persona are contiguous, ordered by after_session
//	conditions.json  optional: by provider, the blocks of controls that are given knowledge (static_profile, oracle_ipas)
//	preferences.jsonl  optional: one Preference a line; those of a persona are contiguous
//	people.jsonl       optional: one Person a line, at most one for each persona
//
// Nothing in a pack names a provider under test, and no id in it reveals an answer.
package pack

import "github.com/memhost/memhost/abi"

// Version is the pack format that this program writes and reads.
const Version = 1

// The files of a pack.
const (
	ManifestFile    = "pack.json"
	EventsFile      = "events.jsonl"
	ProbesFile      = "probes.jsonl"
	ConditionsFile  = "conditions.json"
	PreferencesFile = "preferences.jsonl"
	PeopleFile      = "people.jsonl"
)

// Manifest is pack.json.
type Manifest struct {
	Pack int    `json:"pack"` // Version
	Name string `json:"name"`
	// Source is where the data came from; absent for a synthetic pack.
	Source  *Source `json:"source,omitempty"`
	Builder Builder `json:"builder"`
	// Timestamps is "source" if event times come from the data set, "synthetic" if the builder made them up.
	Timestamps string `json:"timestamps"`
	// Labels lists all labels of probes, sorted.
	Labels []string `json:"labels"`
	Counts Counts   `json:"counts"`
	// Personas are in the order of events.jsonl.
	Personas []Persona `json:"personas"`
	// Repairs lists what the builder had to repair or skip, by kind.
	Repairs []Repair `json:"repairs,omitempty"`
	// ContentSHA256 is the hash of events.jsonl, probes.jsonl, conditions.json, preferences.jsonl and people.jsonl (the
	// last three if the pack has them), in this order, in hexadecimal. Each file is preceded by its name, a zero byte, its length in
	// bytes as decimal text and another zero byte.
	ContentSHA256 string `json:"content_sha256"`
}

// Source describes the file that a pack was built from. The file itself is never part of a pack.
type Source struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	// Licence is an SPDX identifier, or "unknown", for which lint warns.
	Licence string `json:"licence"`
}

// Builder identifies the builder of the pack, with all options that affect the result.
type Builder struct {
	Name    string            `json:"name"` // locomo, longmemeval, personamem, chats, synth
	Options map[string]string `json:"options"`
}

// Counts are the sizes of a pack.
type Counts struct {
	Personas int `json:"personas"`
	Clusters int `json:"clusters"`
	Sessions int `json:"sessions"`
	Events   int `json:"events"`
	Probes   int `json:"probes"`
	// Preferences is 0 for a pack without preferences.jsonl.
	Preferences int `json:"preferences,omitempty"`
}

// Persona is one person with a separate memory and separate probes. Personas share nothing.
type Persona struct {
	PersonaID string `json:"persona_id"`
	// Cluster is the conversation, base question or person that the persona comes from. It is the unit of resampling in
	// statistics.
	Cluster  string `json:"cluster"`
	Sessions int    `json:"sessions"`
	Events   int    `json:"events"`
	Probes   int    `json:"probes"`
}

// Person is one line of people.jsonl: what may be said of a persona without knowing any of their history. Only the
// condition no_memory, variant named, tells it to an agent. It must not answer a probe.
type Person struct {
	PersonaID string `json:"persona_id"`
	Name      string `json:"name"`
	Profile   string `json:"profile,omitempty"` // in a few words, such as "34, a nurse"
}

// MaxPlaces is how many places a pack lists for one kind of repair. All are counted.
const MaxPlaces = 1000

// Repair counts one kind of fault in the source.
type Repair struct {
	Kind  string `json:"kind"` // for example evidence_split, evidence_unknown, date_without_session
	Count int    `json:"count"`
	// Examples lists the places in the source, at most MaxPlaces.
	Examples []string `json:"examples"`
}

// Event is one line of events.jsonl: a turn of a conversation in the contract's form, but without a run id, which the
// runner chooses. Its user_id is the persona.
type Event struct {
	PersonaID string `json:"persona_id"`
	// SessionIndex numbers a persona's sessions, from 1.
	SessionIndex int                `json:"session_index"`
	EventID      string             `json:"event_id"`
	AgentID      string             `json:"agent_id,omitempty"`
	SessionID    string             `json:"session_id"`
	TurnID       string             `json:"turn_id"`
	Timestamp    string             `json:"timestamp"` // RFC 3339 with a zone
	Messages     []abi.Message      `json:"messages"`
	Scenario     string             `json:"scenario,omitempty"`
	Context      string             `json:"context,omitempty"`
	Attribute    string             `json:"attribute,omitempty"`
	Metadata     map[string]abi.Raw `json:"metadata,omitempty"`
}

// MemoryEvent is the event as a run records it.
func (e *Event) MemoryEvent(runID string) *abi.MemoryEvent {
	return &abi.MemoryEvent{
		EventID: e.EventID, RunID: runID, UserID: e.PersonaID, AgentID: e.AgentID,
		SessionID: e.SessionID, TurnID: e.TurnID, Timestamp: e.Timestamp, Messages: e.Messages,
		Scenario: e.Scenario, Context: e.Context, Attribute: e.Attribute, Metadata: e.Metadata,
	}
}

// Probe is one line of probes.jsonl: a question to ask in a test session.
type Probe struct {
	ProbeID   string `json:"probe_id"`
	PersonaID string `json:"persona_id"`
	// AfterSession is the session after which it is asked. All probes of a persona with the same number form one test
	// session.
	AfterSession int    `json:"after_session"`
	Kind         string `json:"kind"` // open vocabulary: question, preference, canary, ...
	Label        string `json:"label"`
	Query        string `json:"query"`
	// AsOf is the time that the question refers to, RFC 3339; absent if there is none.
	AsOf      string             `json:"as_of,omitempty"`
	Scenario  string             `json:"scenario,omitempty"`
	Context   string             `json:"context,omitempty"`
	Attribute string             `json:"attribute,omitempty"`
	Filters   map[string]abi.Raw `json:"filters,omitempty"`
	// Options are the choices that are shown to an agent. They are never part of a retrieval.
	Options []string `json:"options,omitempty"`
	// Opening is what a simulated user says first, by default the query. It is never part of a retrieval that the
	// runner makes.
	Opening string `json:"opening,omitempty"`
	Gold    Gold   `json:"gold"`
}

// Gold is what a right answer needs. Of answers and of evidence, every group is required, and any member satisfies its
// group: [[A, B], [C]] means (A or B) and C.
type Gold struct {
	// Answerable is false for a question whose answer was never said. Recall does not count such questions.
	Answerable bool       `json:"answerable"`
	Answers    [][]string `json:"answers,omitempty"`
	// Evidence has groups of event ids of the same persona, recorded in or before after_session.
	Evidence  [][]string       `json:"evidence,omitempty"`
	Stale     []StaleValue     `json:"stale,omitempty"`
	Forbidden []ForbiddenValue `json:"forbidden,omitempty"`
}

// StaleValue is a value that was once true.
type StaleValue struct {
	Value   string `json:"value"`
	EventID string `json:"event_id"` // where it was said
	// SupersededAt is when another value replaced it, RFC 3339.
	SupersededAt string `json:"superseded_at"`
}

// ForbiddenValue must not appear in the result for a probe: another scope's canary, or a value of another context.
type ForbiddenValue struct {
	Text string `json:"text"`
	Why  string `json:"why"`
}
