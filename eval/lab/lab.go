// Package lab has the lab file, which says what an evaluation runs.
package lab

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"go.yaml.in/yaml/v3"
)

// Version is the version of the format that this program reads.
const Version = 1

// Lab is a resolved lab file, with all defaults filled in.
type Lab struct {
	Lab  int    `json:"lab" yaml:"lab"`
	Name string `json:"name" yaml:"name"`
	// Pack is a path, relative to the lab file's folder.
	Pack      string     `json:"pack" yaml:"pack"`
	Providers []Provider `json:"providers" yaml:"providers"`
	// Budgets are max_tokens values, in the order in which a probe is asked; 0 means no limit. Default: 1000, 4000.
	Budgets []int64 `json:"budgets" yaml:"budgets"`
	// MinTokens has the min_tokens of those budgets that name one, by their max_tokens. It is a target: nothing is padded.
	MinTokens map[int64]int64 `json:"min_tokens,omitempty" yaml:"min_tokens"`
	// Replicates is how often each provider runs the whole pack; default 1.
	Replicates int `json:"replicates" yaml:"replicates"`
	// Seed is the seed of everything random: canaries, sampled probes, statistics. Default 1.
	Seed uint64 `json:"seed" yaml:"seed"`
	// Concurrency is how many personas a cell runs concurrently when it is its turn; default 1, the only value with which
	// latencies are comparable.
	Concurrency int `json:"concurrency" yaml:"concurrency"`
	// CellsAtOnce is how many cells of a replicate have a turn at the same time; default 1.
	CellsAtOnce int       `json:"cells_at_once" yaml:"cells_at_once"`
	Readiness   Readiness `json:"readiness" yaml:"readiness"`
	// Tokenizer is o200k_base by default; Frame is full, compact or minimal, full by default. Runs are only comparable
	// if both are the same.
	Tokenizer string `json:"tokenizer" yaml:"tokenizer"`
	Frame     string `json:"frame" yaml:"frame"`
	// Stability is the share of probes that are read three times; default 0, because a read may cost money.
	Stability float64 `json:"stability" yaml:"stability"`
	// Freshness is how many events are used to measure how soon acknowledged content can be retrieved. Default: 3 for
	// providers without a backend, otherwise 0, because a read may cost money.
	Freshness *int `json:"freshness,omitempty" yaml:"freshness"`
	// Primary is the comparison for which verdicts are given. It is sealed before the run; everything else is
	// exploratory.
	Primary *Primary `json:"primary,omitempty" yaml:"primary"`
	// Cassettes records each cell for replay, with one operation at a time.
	Cassettes bool `json:"cassettes,omitempty" yaml:"cassettes"`
	// Agent, Simulator and Judge are optional models.
	Agent *Agent `json:"agent,omitempty" yaml:"agent"`
	// Subject is an agent that makes its own retrievals and has a conversation with a simulated user in each test
	// session.
	Subject   *Subject   `json:"subject,omitempty" yaml:"subject"`
	Simulator *Simulator `json:"simulator,omitempty" yaml:"simulator"`
	Judge     *Judge     `json:"judge,omitempty" yaml:"judge"`
	// Prices are the user's prices of models, by name. With them the report shows the cost of each answer.
	Prices map[string]Price `json:"prices,omitempty" yaml:"prices"`
}

// Price is the cost of a million tokens, in any currency, the same for all models of a lab.
type Price struct {
	Prompt     float64 `json:"prompt" yaml:"prompt"`
	Completion float64 `json:"completion" yaml:"completion"`
}

// Provider is one column of the comparison.
type Provider struct {
	// Label is the provider's name in the run's folder and report: letters, digits, - _ and dots. Default: the
	// provider's name.
	Label string `json:"label" yaml:"label"`
	// Memory is the block memory of a memhost configuration, Secrets its block secrets.
	Memory  map[string]any `json:"memory" yaml:"memory"`
	Secrets map[string]any `json:"secrets,omitempty" yaml:"secrets"`
	// Plugin is a module's file or a built-in module's name, if the configuration has none.
	Plugin string `json:"plugin,omitempty" yaml:"plugin"`
	// Budgets are this provider's own budgets; default: the lab's.
	Budgets []int64 `json:"budgets,omitempty" yaml:"budgets"`
	// Reference marks a provider that AddReferences added: a floor, a ceiling or a self-test.
	Reference bool `json:"reference,omitempty" yaml:"-"`
}

// Readiness says how long a test session waits for memory to be ready.
type Readiness struct {
	TimeoutMS int64 `json:"timeout_ms" yaml:"timeout_ms"` // default 60000
	// OnTimeout is pending (default: the session's probes are asked and flagged) or stop (the cell ends).
	OnTimeout string `json:"on_timeout" yaml:"on_timeout"`
}

// Primary is the sealed comparison: every provider against Reference, on one metric at one budget.
type Primary struct {
	Metric    string `json:"metric" yaml:"metric"`
	Budget    int64  `json:"budget" yaml:"budget"`
	Reference string `json:"reference" yaml:"reference"`
}

// Model is an OpenAI-compatible endpoint.
type Model struct {
	URL   string `json:"url" yaml:"url"` // up to and including /v1
	Model string `json:"model" yaml:"model"`
	// KeyEnv names the environment variable with the key; empty means that no key is sent.
	KeyEnv      string  `json:"key_env,omitempty" yaml:"key_env"`
	Temperature float64 `json:"temperature" yaml:"temperature"`
	MaxTokens   int64   `json:"max_tokens" yaml:"max_tokens"` // of an answer, including the model's thoughts; default 4096
	TimeoutMS   int64   `json:"timeout_ms" yaml:"timeout_ms"` // default 60000
}

// Agent answers probes with the context from a provider.
type Agent struct {
	Model `yaml:",inline"`
	// Template is the prompt for all providers. It has {{context}} and {{query}}, {{options}} if probes have choices,
	// and {{now}}, the time at which the question is asked. Default: DefaultTemplate.
	Template string `json:"template" yaml:"template"`
}

// Subject is the agent under evaluation, and how it is connected.
type Subject struct {
	// Model is the endpoint of a builtin. A chat uses its model, key_env, temperature and max_tokens. TimeoutMS limits
	// each answer, the start and the end; default 60000.
	Model `yaml:",inline"`
	// Seat is builtin, command, chat or stub.
	Seat string `json:"seat" yaml:"seat"`
	// Command is the program of a command or chat, with its arguments. {lab} in it is replaced by the lab file's
	// folder, and {port} by the port on which a chat must listen.
	Command []string `json:"command,omitempty" yaml:"command"`
	// Template is a builtin's prompt. It has {{context}}, {{query}}, the user's last text, {{now}}, and {{user}}: "the
	// user", or the name and profile if the condition includes them. Default: DefaultSubjectTemplate.
	Template string `json:"template,omitempty" yaml:"template"`
	// Retrieve is turn (default: a builtin retrieves with each text of the user) or session (only with the first one).
	Retrieve string `json:"retrieve,omitempty" yaml:"retrieve"`
	// Budgets are those of the lab's budgets that are used in conversations; default: all of a provider's.
	Budgets []int64 `json:"budgets,omitempty" yaml:"budgets"`
}

// The kinds of subjects, and when a builtin retrieves.
const (
	SeatBuiltin = "builtin"
	SeatCommand = "command"
	SeatChat    = "chat"
	SeatStub    = "stub"

	RetrieveTurn    = "turn"
	RetrieveSession = "session"
)

// DefaultSubjectTemplate is the default prompt of a builtin.
const DefaultSubjectTemplate = `{{context}}

The present date and time: {{now}}. You are the assistant of {{user}}. Do what the user asks, and use what the memory above says about them. If it does not say what you need, say that you do not know. Answer in at most two sentences.

User: {{query}}`

// Simulator is a model that plays the users in conversations with a subject, instead of the scripted user.
type Simulator struct {
	Model `yaml:",inline"`
	Turns int `json:"turns" yaml:"turns"` // after this many answers the user gives up; default 3
}

// Judge decides whether an answer is right. It does not see which provider was used.
type Judge struct {
	Model `yaml:",inline"`
	// Rubric is the judge's instruction. Default: DefaultRubric, extended by what a right answer may differ in,
	// depending on the kind of question.
	Rubric string `json:"rubric" yaml:"rubric"`
	// Grades is the judge's instruction for grading a subject's conversations from 0 to 4. Default:
	// model.DefaultGradeRubric.
	Grades string `json:"grades,omitempty" yaml:"grades"`
}

// DefaultTemplate is the agent's default prompt.
const DefaultTemplate = `{{context}}

The present date and time: {{now}}. Answer the user's question in at most two sentences. Use what the memory above says; if it does not say, answer "I do not know".

Question: {{query}}{{options}}`

// DefaultRubric is the judge's default instruction.
const DefaultRubric = `You compare an answer with the expected one. Answer with one word.
yes: the answer says the same as the expected answer, in any words.
no: it says something else, leaves it open, or says that it does not know.`

// Read reads a lab file (YAML or JSON) and fills in the defaults.
//
// Errors: invalid_argument that starts with the path of the key.
func Read(path string) (*Lab, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, abi.WrapError(abi.CodeInvalidArgument, path+": does not exist, want a lab file", err).
				WithHint("docs/eval.md shows one; without a file: --pack FILE --providers NAME,NAME")
		}
		return nil, abi.WrapError(abi.CodeInvalidArgument, err.Error(), err)
	}
	l, err := Parse(text)
	if err != nil {
		e := *abi.AsError(err)
		e.Message = path + ": " + e.Message
		return nil, &e
	}
	if l.Pack != "" && !filepath.IsAbs(l.Pack) {
		l.Pack = filepath.Join(filepath.Dir(path), l.Pack)
	}
	return l, nil
}

// Parse parses the text of a lab file.
func Parse(text []byte) (*Lab, error) {
	var tree any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, wrong("%v", err)
	}
	known, err := shorthand(tree)
	if err != nil {
		return nil, err
	}
	plain, err := json.Marshal(known)
	if err != nil {
		return nil, wrong("%v", err)
	}
	l := new(Lab)
	d := json.NewDecoder(bytes.NewReader(plain))
	d.DisallowUnknownFields()
	if err := d.Decode(l); err != nil {
		return nil, unknownKey(err)
	}
	l.complete()
	return l, l.Validate()
}

// shorthand expands a provider that is given only by name.
func shorthand(tree any) (map[string]any, error) {
	root, ok := tree.(map[string]any)
	if !ok {
		return nil, wrong("want a mapping with lab, pack and providers")
	}
	list, _ := root["providers"].([]any)
	for i, p := range list {
		if name, ok := p.(string); ok {
			list[i] = map[string]any{"label": name, "memory": map[string]any{"provider": name}}
		}
	}
	return root, splitBudgets(root)
}

// splitBudgets replaces budgets that are {min_tokens, max_tokens} by their max_tokens, and puts their min_tokens into the
// lab's own map.
func splitBudgets(root map[string]any) error {
	list, _ := root["budgets"].([]any)
	least := map[string]any{}
	for i, b := range list {
		pair, ok := b.(map[string]any)
		if !ok {
			continue
		}
		most, ok := pair["max_tokens"]
		for key := range pair {
			if ok = ok && (key == "max_tokens" || key == "min_tokens"); !ok {
				break
			}
		}
		if !ok {
			return wrong("budgets[%d]: want a number of tokens, or {max_tokens, min_tokens}", i)
		}
		list[i] = most
		if min, set := pair["min_tokens"]; set {
			least[fmt.Sprint(most)] = min
		}
	}
	if len(least) > 0 {
		root["min_tokens"] = least
	}
	return nil
}

var unknownField = regexp.MustCompile(`unknown field "(.+)"`)

func unknownKey(err error) error {
	m := unknownField.FindStringSubmatch(err.Error())
	if m == nil {
		return wrong("%s", pack.Mismatch(err))
	}
	e := wrong("%s: is not a key of a lab file", m[1])
	others := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return key == m[1] }) // keys of other places
	if near := abi.Nearest(m[1], others); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}

// keys are the candidates for "did you mean".
var keys = []string{"lab", "name", "pack", "providers", "label", "memory", "secrets", "plugin", "budgets", "replicates",
	"seed", "concurrency", "cells_at_once",
	"readiness", "timeout_ms", "on_timeout", "tokenizer", "frame", "stability", "freshness", "primary", "metric",
	"budget", "reference", "cassettes", "agent",
	"simulator", "judge", "url", "model", "key_env", "temperature", "max_tokens", "template", "command", "turns",
	"rubric", "grades", "subject", "seat", "retrieve", "prices", "prompt", "completion"}

func (l *Lab) complete() {
	if l.Name == "" {
		l.Name = "evaluation"
	}
	if l.Budgets == nil {
		l.Budgets = []int64{1000, 4000}
	}
	l.Replicates, l.Concurrency, l.CellsAtOnce = max(1, l.Replicates), max(1, l.Concurrency), max(1, l.CellsAtOnce)
	if l.Seed == 0 {
		l.Seed = 1
	}
	if l.Readiness.TimeoutMS == 0 {
		l.Readiness.TimeoutMS = 60_000
	}
	if l.Readiness.OnTimeout == "" {
		l.Readiness.OnTimeout = "pending"
	}
	if l.Tokenizer == "" {
		l.Tokenizer = "o200k_base"
	}
	if l.Frame == "" {
		l.Frame = "full"
	}
	for i := range l.Providers {
		p := &l.Providers[i]
		if p.Label == "" {
			p.Label = p.Name()
		}
	}
	for _, m := range l.models() {
		if m.MaxTokens == 0 {
			m.MaxTokens = 4096 // a reasoning model spends hundreds of tokens before its first word
		}
		if m.TimeoutMS == 0 {
			m.TimeoutMS = 60_000
		}
	}
	if l.Agent != nil && l.Agent.Template == "" {
		l.Agent.Template = DefaultTemplate
	}
	if s := l.Subject; s != nil {
		s.complete()
	}
	if l.Judge != nil && l.Judge.Rubric == "" {
		l.Judge.Rubric = DefaultRubric
	}
	if l.Simulator != nil && l.Simulator.Turns == 0 {
		l.Simulator.Turns = 3
	}
}

func (s *Subject) complete() {
	if s.Seat == SeatBuiltin && s.Template == "" {
		s.Template = DefaultSubjectTemplate
	}
	if s.Seat == SeatBuiltin && s.Retrieve == "" {
		s.Retrieve = RetrieveTurn
	}
}

// validate checks everything that can be checked without starting the subject.
func (s *Subject) validate(l *Lab) error {
	asksModel, startsProgram := s.Seat == SeatBuiltin, s.Seat == SeatCommand || s.Seat == SeatChat
	switch {
	case !slices.Contains([]string{SeatBuiltin, SeatCommand, SeatChat, SeatStub}, s.Seat):
		return wrong("subject.seat: %q is not one of builtin, command, chat, stub", s.Seat)
	case asksModel && s.URL == "":
		return wrong("subject.url: required for the seat builtin")
	case !asksModel && s.URL != "":
		return wrong("subject.url: only the seat builtin has one; the seat %s has its own address or none", s.Seat)
	case !asksModel && (s.Template != "" || s.Retrieve != ""):
		return wrong("subject.template, subject.retrieve: only the seat builtin has them")
	case asksModel && s.Retrieve != RetrieveTurn && s.Retrieve != RetrieveSession:
		return wrong("subject.retrieve: %q is not one of turn, session", s.Retrieve)
	case startsProgram && len(s.Command) == 0:
		return wrong("subject.command: required for the seat %s", s.Seat)
	case !startsProgram && len(s.Command) > 0:
		return wrong("subject.command: the seat %s starts no program", s.Seat)
	case l.Cassettes:
		return wrong("cassettes: a subject retrieves for itself, and a cassette holds no such conversation").
			WithHint("leave out cassettes or subject")
	}
	for i, b := range s.Budgets {
		if !slices.Contains(l.Budgets, b) {
			return wrong("subject.budgets[%d]: %d is not one of budgets", i, b)
		}
	}
	return nil
}

// models returns the endpoints that the lab names.
func (l *Lab) models() map[string]*Model {
	list := map[string]*Model{}
	if l.Agent != nil {
		list["agent"] = &l.Agent.Model
	}
	if l.Subject != nil {
		list["subject"] = &l.Subject.Model
	}
	if l.Simulator != nil {
		list["simulator"] = &l.Simulator.Model
	}
	if l.Judge != nil {
		list["judge"] = &l.Judge.Model
	}
	return list
}

// Name is the provider that the block selects: memory.backend, memory.condition, or memory.provider, which may be
// either.
func (p *Provider) Name() string {
	for _, key := range []string{"provider", "backend", "condition"} {
		if name, ok := p.Memory[key].(string); ok {
			return name
		}
	}
	return ""
}

// Feedback reports whether the simulator's corrections are passed to the provider's apply_feedback: memory.feedback.
func (p *Provider) Feedback() bool {
	on, _ := p.Memory["feedback"].(bool)
	return on
}

// Named reports whether the provider is no_memory with variant named: a subject gets the user's name and profile.
func (p *Provider) Named() bool {
	if p.Name() != "no_memory" {
		return false
	}
	conditions, _ := p.Memory["conditions"].(map[string]any)
	block, _ := conditions["no_memory"].(map[string]any)
	return block["variant"] == "named"
}

var labelForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Validate checks everything that can be checked without pack and modules.
func (l *Lab) Validate() error {
	switch {
	case l.Lab != Version:
		return wrong("lab: is version %d, this program reads version %d", l.Lab,
			Version).WithHint("a lab file begins with: lab: 1")
	case l.Pack == "":
		return wrong("pack: required").WithHint("`memhost eval pack build` makes one")
	case len(l.Providers) == 0:
		return wrong("providers: want at least one")
	case len(l.Budgets) == 0:
		return wrong("budgets: want at least one; 0 means no limit")
	case l.Stability < 0 || l.Stability > 1:
		return wrong("stability: want a share from 0 to 1, found %v", l.Stability)
	case l.Freshness != nil && (*l.Freshness < 0 || *l.Freshness > 100):
		return wrong("freshness: want 0 to 100 events, found %d", *l.Freshness)
	case !slices.Contains([]string{"pending", "stop"}, l.Readiness.OnTimeout):
		return wrong("readiness.on_timeout: %q is not one of pending, stop", l.Readiness.OnTimeout)
	case !slices.Contains([]string{"full", "compact", "minimal"}, l.Frame):
		return wrong("frame: %q is not one of full, compact, minimal", l.Frame)
	case l.Cassettes && (l.Concurrency > 1 || l.CellsAtOnce > 1):
		return wrong("cassettes: a host that records does one operation at a time").WithHint("leave out concurrency " +
			"and cells_at_once")
	}
	labels := map[string]bool{}
	for i := range l.Providers {
		p := &l.Providers[i]
		switch {
		case p.Name() == "":
			return wrong("providers[%d].memory: want backend, condition or provider: NAME", i)
		case !labelForm.MatchString(p.Label):
			return wrong("providers[%d].label: %q: want letters, digits, dots, - and _", i, p.Label)
		case labels[strings.ToLower(p.Label)]:
			return wrong("providers[%d].label: %q is there twice", i, p.Label).WithHint("give each a label of its own")
		}
		labels[strings.ToLower(p.Label)] = true
	}
	for i, b := range l.Budgets {
		if b < 0 || slices.Contains(l.Budgets[:i], b) {
			return wrong("budgets[%d]: %d: want different numbers of tokens, 0 for no limit", i, b)
		}
		if least := l.MinTokens[b]; least < 0 || b > 0 && least > b {
			return wrong("budgets[%d]: min_tokens %d: want 0 to max_tokens", i, least)
		}
	}
	for name, m := range l.models() {
		if m.URL == "" && name != "subject" {
			return wrong("%s.url: required", name)
		}
	}
	if l.Judge != nil && l.Agent == nil && l.Subject == nil {
		return wrong("judge: judges answers, and there is no agent and no subject")
	}
	if l.Simulator != nil && l.Subject == nil {
		return wrong("simulator: plays the user with whom a subject talks, and there is no subject")
	}
	if l.Subject != nil {
		if err := l.Subject.validate(l); err != nil {
			return err
		}
	}
	if p := l.Primary; p != nil {
		if !labels[strings.ToLower(p.Reference)] && !slices.Contains(references, p.Reference) {
			return wrong("primary.reference: %q is no provider's label", p.Reference).
				WithHint("a label of providers, or a reference that every run has: " + strings.Join(references, ", "))
		}
		if !slices.Contains(l.Budgets, p.Budget) {
			return wrong("primary.budget: %d is not one of budgets", p.Budget)
		}
	}
	return nil
}

// references are providers that appear in every table for orientation: a floor; a lexical control; the full history,
// which without a limit (budget 0) must find everything, and so tests the chain from pack to metric; and recall, which
// is not a control but the memory that people have without a server.
var references = []string{"no_memory", "bm25", "full_history", "recall"}

// AddReferences adds the references that exist and that the lab does not already name. known reports which exist.
func (l *Lab) AddReferences(known func(name string) bool) {
	for _, name := range references {
		i := slices.IndexFunc(l.Providers, func(p Provider) bool { return p.Label == name })
		if i < 0 && known(name) {
			l.Providers = append(l.Providers, Provider{Label: name, Memory: map[string]any{"provider": name},
				Reference: true})
			i = len(l.Providers) - 1
		}
		if i >= 0 && name == "full_history" && l.Providers[i].Budgets == nil && !slices.Contains(l.Budgets, 0) {
			l.Providers[i].Budgets = append(slices.Clone(l.Budgets), 0)
		}
	}
}

// Budget returns the contract's form of a budget.
func (l *Lab) Budget(maxTokens int64) (b abi.ContextBudget) {
	if maxTokens > 0 {
		b.MaxTokens = &maxTokens
	}
	if least, set := l.MinTokens[maxTokens]; set && least > 0 {
		b.MinTokens = &least
	}
	return b
}

// Find returns the provider with a label; nil if there is none.
func (l *Lab) Find(label string) *Provider {
	for i := range l.Providers {
		if l.Providers[i].Label == label {
			return &l.Providers[i]
		}
	}
	return nil
}

// BudgetsOf returns the budgets that are used with a provider.
func (l *Lab) BudgetsOf(p *Provider) []int64 {
	if p.Budgets != nil {
		return p.Budgets
	}
	return l.Budgets
}

// SubjectBudgets returns those of a provider's budgets that are used in conversations.
func (l *Lab) SubjectBudgets(provider []int64) []int64 {
	if l.Subject.Budgets == nil {
		return provider
	}
	return slices.DeleteFunc(slices.Clone(provider), func(b int64) bool { return !slices.Contains(l.Subject.Budgets, b) })
}

// SHA256 identifies the resolved lab, in hexadecimal. It includes the pack by content hash, so it does not depend on
// where the pack's file is.
func (l *Lab) SHA256(packContent string) string {
	named := *l
	named.Pack = packContent
	text, _ := json.Marshal(&named) // plain values can always be marshaled
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

func wrong(format string, args ...any) *abi.Error {
	return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf(format, args...))
}
