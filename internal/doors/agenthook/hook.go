package agenthook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/alone"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/outbox"
	"github.com/memhost/memhost/internal/text/conversations"
	"github.com/memhost/memhost/internal/text/transcript"
)

// Slot is what a hook asks of a slot. A host.Contract is one.
type Slot interface {
	outbox.Slot
	Retrieve(ctx context.Context, request *abi.RetrieveRequest) (*abi.RetrieveResult, error)
	FormatContext(ctx context.Context, request *abi.FormatRequest) (*abi.FormatResult, error)
	Capabilities(ctx context.Context) (*report.Capabilities, error)
}

// Options configure Run.
type Options struct {
	// Agent is "claude-code" or "codex". It begins the event ids.
	Agent string
	// Slot is asked for context. It may be down; its methods then return errors.
	Slot Slot
	// Box keeps the events until the slot has accepted them.
	Box *outbox.Box
	// Folder keeps prompts until their turn ends.
	Folder string
	// Scope is whose memory is used. Its ids may contain PlaceProject and PlacePerson. Nothing said in a conversation
	// can select another scope.
	Scope abi.MemoryScope
	// Person replaces PlacePerson. Dir is the folder in which the agent was started; "" means the payload's.
	Person, Dir string
	// Budget bounds the context.
	Budget abi.ContextBudget
	// MaxChars bounds the context in characters. Both agents show the model up to 10,000 characters in full, and only
	// part of a longer text. 0 means DefaultMaxChars.
	MaxChars int
	// Timeout is how long the agent waits for its context. 0 means 4 s.
	Timeout time.Duration
	// Deliver starts to deliver what is in the box and returns soon. Required.
	Deliver func()
	// NoRecord gives the session context without recording it.
	NoRecord bool
	// Problem is why there is no memory: a configuration that cannot be used. If it is set, only Logger is needed
	// besides.
	Problem error
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Logger goes to standard error. Required.
	Logger hclog.Logger
}

const (
	// DefaultMaxChars is slightly less than the 10,000 characters that both agents show in full.
	DefaultMaxChars = 9900
	// DefaultMaxTokens is a budget that rarely exceeds DefaultMaxChars.
	DefaultMaxTokens = 2200

	defaultTimeout = 4 * time.Second
	// maxInput bounds the payload, in bytes, like a request of the contract.
	maxInput = 16 << 20
	// maxID is the longest id that the contract allows, in bytes.
	maxID = 512
)

// hook is one event of an agent.
type hook struct {
	Options
	payload *payload
	session *session
	notes   notes
	scope   abi.MemoryScope
}

// Run reads the payload of one event from in, handles it, and writes the answer to out. It never fails: problems are in
// the answer or in the log, and the agent continues without memory.
func Run(ctx context.Context, o Options, in io.Reader, out io.Writer) {
	defer func() {
		if p := recover(); p != nil {
			o.Logger.Error("no memory in this turn: this is a defect of memhost", "panic", fmt.Sprint(p))
		}
	}()
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxChars <= 0 {
		o.MaxChars = DefaultMaxChars
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	text, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err == nil && len(text) > maxInput {
		err = abi.NewError(abi.CodeTooLarge, fmt.Sprintf("the hook's input is longer than %d bytes", maxInput))
	}
	var p *payload
	if err == nil {
		p, err = readPayload(text)
	}
	if err != nil {
		e := abi.AsError(err)
		o.Logger.Warn("no memory for this event", "error", err, "hint", e.Hint)
		if p == nil { // the event is unknown, but the person should learn about it
			p = new(payload)
		}
		message := "memhost: no memory: " + e.Message
		if p.Event == eventStop || p.Event == eventSessionEnd {
			message = "memhost: this turn is not recorded: " + e.Message
		}
		if e.Hint != "" {
			message += "; " + e.Hint
		}
		write(o, answer{Message: message}, p.Event, out)
		return
	}
	if p.wrongField != nil {
		o.Logger.Warn("a field of the hook's input is not what memhost knows, and was passed over", "error", p.wrongField)
	}
	write(o, (&hook{Options: o, payload: p}).run(ctx), p.Event, out)
}

func write(o Options, a answer, event string, out io.Writer) {
	if _, err := out.Write(a.line(event)); err != nil {
		o.Logger.Warn("the agent does not take the answer", "error", err)
	}
}

// run handles the event.
func (h *hook) run(ctx context.Context) answer {
	if id := h.payload.AgentID; id != nil && id != "" {
		return answer{} // a sub-agent: its prompt and its answer are not a person's conversation
	}
	if h.Problem != nil {
		h.Logger.Error("no memory: the hook's configuration cannot be used", "error", h.Problem, "hint",
			abi.AsError(h.Problem).Hint)
		if h.payload.Event != eventSessionStart {
			return answer{}
		}
		return answer{Message: "memhost: no memory in this session: " + withHint(h.Problem)}
	}
	var err error
	h.session, err = openSession(h.Folder, h.payload.SessionID, h.Now)
	if err != nil {
		h.Logger.Error("no memory: its folder cannot be used", "error", err)
		return answer{Message: "memhost: no memory: its folder cannot be used: " + err.Error()}
	}
	h.notes = h.session.notes()
	if h.notes.Project == "" {
		h.notes.Project = Project(h.folder())
	}
	h.scope = Expand(h.Scope, h.notes.Project, h.Person)
	if err := h.scope.Validate(); err != nil {
		return answer{Message: "memhost: no memory: " + err.Error()}
	}
	switch h.payload.Event {
	case eventSessionStart:
		h.recordForgotten()
		h.deliver()
		a := h.contextFor(ctx, h.startQuery())
		if a.Message == "" {
			a.Message = h.nothingKept(ctx)
		}
		return a
	case eventPrompt:
		return h.prompted(ctx)
	case eventStop:
		return h.stopped()
	case eventSessionEnd:
		a := h.record(h.session, nil)
		h.deliver()
		return a
	case eventPreCompact:
		h.deliver()
	default:
		h.Logger.Info("memhost does nothing at this event; it need not be in the agent's settings", "event",
			h.payload.Event)
	}
	return answer{}
}

// nothingKept returns a message for the person if the slot keeps nothing of this session, otherwise "".
func (h *hook) nothingKept(ctx context.Context) string {
	if h.NoRecord {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	c, err := h.Slot.Capabilities(ctx)
	if err != nil || !report.KeepsNothing(c) {
		return ""
	}
	return "memhost: nothing of this session will be remembered: " + c.Provider + " serves, which keeps nothing. " +
		"`memhost swap recall` takes a memory that does"
}

// folder is where the agent works.
func (h *hook) folder() string {
	if h.Dir != "" {
		return h.Dir
	}
	return h.payload.CWD
}

// startQuery is the question of a starting session: the last prompt after a compaction or a resumption, otherwise the
// project.
func (h *hook) startQuery() string {
	if h.notes.Last != "" && h.payload.Source != "clear" {
		return h.notes.Last
	}
	return StartQuestion(h.notes.Project)
}

// StartQuestion is the question of a session that starts in a project (Project).
func StartQuestion(project string) string {
	if at := strings.LastIndexByte(project, '-'); at > 0 {
		project = project[:at]
	}
	return "What is known about the project " + project + "?"
}

// prompted stores the prompt and answers with its context.
func (h *hook) prompted(ctx context.Context) answer {
	text := transcript.ReadPrompt(*h.payload.Prompt).Words
	if text == "" || slices.Contains(h.notes.Crons, strings.TrimSpace(*h.payload.Prompt)) {
		return answer{}
	}
	var problem answer
	if !h.NoRecord {
		err := h.session.keep(&prompt{Text: text, Time: h.Now().UTC().Format(time.RFC3339Nano), TurnID: h.payload.TurnID,
			PromptID: h.payload.PromptID, Transcript: h.payload.Transcript,
			Session: h.payload.SessionID, CWD: h.payload.CWD, Scope: h.scope})
		if err != nil {
			h.Logger.Error("the turn will not be recorded: its prompt could not be put on disk", "error", err)
			problem.Message = "memhost: this turn will not be recorded: " + err.Error()
		}
	}
	h.notes.Last = text
	a := h.contextFor(ctx, text)
	h.deliver() // afterwards, because both open the data folder if no slot runs
	if problem.Message != "" {
		a.Message = problem.Message
	}
	return a
}

// contextFor returns the slot's context for a question, or a message for the person if memory has just become
// unavailable.
func (h *hook) contextFor(ctx context.Context, query string) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	text, err := h.retrieve(ctx, query)
	if err != nil {
		e := abi.AsError(err)
		h.Logger.Warn("context is absent: the slot gave none", "code", e.Code, "error", e.Message, "hint", e.Hint)
		if !h.notes.Outage {
			a.Message = "memhost: no memory for now, what is said is kept and delivered later: " + e.Message
			if e.Reason == client.ReasonNoSlot { // other hints are for programs
				a.Message += "; " + e.Hint
			}
		}
	}
	h.notes.Outage = err != nil
	if err := h.session.note(h.notes); err != nil {
		h.Logger.Warn("the session's notes could not be written", "error", err)
	}
	a.Context = text
	return a
}

// retrieve asks the slot. A context that the agent would cut is formatted again with fewer tokens.
func (h *hook) retrieve(ctx context.Context, query string) (string, error) {
	request := &abi.RetrieveRequest{Query: query, Scope: h.scope, SessionID: shortID(h.payload.SessionID),
		Budget: h.Budget}
	result, err := h.Slot.Retrieve(ctx, request)
	if err != nil {
		return "", err
	}
	text := result.FormattedContext
	for range 3 {
		chars := utf8.RuneCountInString(text)
		if chars <= h.MaxChars {
			return text, nil
		}
		tokens := int64(DefaultMaxTokens)
		if h.Budget.MaxTokens != nil {
			tokens = *h.Budget.MaxTokens
		}
		budget := h.Budget
		fewer := tokens * int64(h.MaxChars) / int64(chars) * 9 / 10
		budget.MaxTokens = &fewer
		h.Budget = budget
		again, err := h.Slot.FormatContext(ctx, &abi.FormatRequest{Result: *result, Budget: budget, Scope: h.scope})
		if err != nil {
			return "", err
		}
		text = again.FormattedContext
	}
	return "", abi.NewError(abi.CodeTooLarge, fmt.Sprintf("the context stays longer than %d characters, of which the "+
		"agent would show "+
		"its model only a part", h.MaxChars)).WithHint("a smaller --max-tokens or --max-items")
}

// stopped records the turn.
func (h *hook) stopped() answer {
	h.notes.learnCrons(h.payload)
	if err := h.session.note(h.notes); err != nil {
		h.Logger.Warn("the session's notes could not be written", "error", err)
	}
	if h.payload.Answer == nil && !h.NoRecord {
		h.Logger.Warn("the turn is recorded without its answer: the Stop hook's input has no last_assistant_message")
	}
	stop := h.payload
	if h.NoRecord { // what waits was said earlier, and this is not its answer
		stop = nil
	}
	a := h.record(h.session, stop)
	h.deliver()
	if a.Message == "" && !h.NoRecord && h.payload.wrongAnswer {
		a.Message = "memhost: this turn is recorded without its answer: " + h.payload.wrongField.Error()
	}
	return a
}

// learnCrons remembers what scheduled tasks will submit.
func (n *notes) learnCrons(p *payload) {
	for _, cron := range p.Crons {
		text := strings.TrimSpace(cron.Prompt)
		if text != "" && !slices.Contains(n.Crons, text) {
			n.Crons = append(n.Crons, text)
		}
	}
}

// record puts the session's prompts into the box as one event for each scope, with the answer if stop has one. With
// NoRecord it records only prompts that were stored earlier, by this session or by one that was killed.
//
// An agent may run several Stop hooks of one turn at the same time. The first one takes all prompts, and the others
// find none.
func (h *hook) record(s *session, stop *payload) answer {
	defer alone.Wait(s.dir)()
	prompts, files, err := s.pending()
	if stop != nil {
		prompts, files = upTo(prompts, files, stop.TurnID)
	}
	for _, turn := range ofEachScope(prompts) {
		answered := stop
		if turn[len(turn)-1].Text != prompts[len(prompts)-1].Text {
			answered = nil // it answers what was said later, in another memory
		}
		err = errors.Join(err, h.Box.Add(h.event(s, turn, answered)))
	}
	if err == nil {
		err = s.remove(files)
	}
	if err != nil {
		h.Logger.Error("the turn is not recorded; its prompts stay on disk", "error", err, "folder", s.dir)
		return answer{Message: "memhost: the turn is not recorded yet: " + withHint(err)}
	}
	return answer{}
}

// ofEachScope groups prompts by scope. There are several scopes if two hooks serve one agent, or if the hook's flags
// have changed since a turn that never ended.
func ofEachScope(prompts []prompt) (turns [][]prompt) {
	for _, p := range prompts {
		at := slices.IndexFunc(turns, func(turn []prompt) bool { return turn[0].Scope == p.Scope })
		if at < 0 {
			at, turns = len(turns), append(turns, nil)
		}
		turns[at] = append(turns[at], p)
	}
	return turns
}

// withHint formats an error for a person.
func withHint(err error) string {
	if e := abi.AsError(err); e.Hint != "" {
		return err.Error() + "; " + e.Hint
	}
	return err.Error()
}

// event is a turn as an event of the contract.
func (h *hook) event(s *session, prompts []prompt, stop *payload) *abi.MemoryEvent {
	first := &prompts[0]
	e := &abi.MemoryEvent{RunID: first.Scope.RunID, UserID: first.Scope.PersonaID, AgentID: first.Scope.AgentID,
		SessionID: shortID(first.Session), Timestamp: first.Time,
		Metadata: map[string]abi.Raw{"agent": abi.Raw(strconv.Quote(h.Agent))}}
	parts := []string{h.Agent, first.Session, first.TurnID, first.Time}
	for i := range prompts {
		parts = append(parts, prompts[i].Text)
		e.Messages = append(e.Messages, abi.Message{Role: abi.RoleUser, Content: &prompts[i].Text})
	}
	if stop != nil && stop.Answer != nil {
		if words, _ := transcript.Answer(*stop.Answer); words != "" {
			parts = append(parts, *stop.Answer)
			e.Messages = append(e.Messages, abi.Message{Role: abi.RoleAssistant, Content: &words})
		}
	}
	e.EventID = h.turnID(s, first)
	if e.EventID == "" {
		e.EventID = h.Agent + "-" + outbox.Digest(parts...)
	}
	e.TurnID = shortID(first.TurnID + "@" + first.Time)
	return e
}

// turnID is the id that an import of the session's log also gives the turn. It is empty if the agent does not name the
// turn, and for anything said in a turn after it was recorded. The event's id is then derived from its content, so that
// a turn reported twice is one event.
func (h *hook) turnID(s *session, first *prompt) (id string) {
	source := conversations.Source(h.Agent)
	switch {
	case first.TurnID != "":
		id = conversations.TurnID(source, first.Session, first.TurnID)
	case first.PromptID != "":
		id = conversations.TurnID(source, first.Session, first.PromptID)
	case source == conversations.ClaudeCode && first.Transcript != "":
		id = conversations.FindPrompt(first.Transcript, first.Text)
	}
	if id == "" || !s.claim(id) {
		return ""
	}
	return id
}

// recordForgotten records what is left of sessions that ended without notice, for example because their agent was
// killed.
func (h *hook) recordForgotten() {
	for _, s := range oldSessions(h.Folder, h.Now) {
		if s.dir == h.session.dir || h.record(s, nil) != (answer{}) {
			continue
		}
		if err := s.end(); err != nil {
			h.Logger.Warn("the folder of an old session could not be removed", "error", err)
		}
	}
}

// deliver starts a delivery if something waits.
func (h *hook) deliver() {
	n, err := h.Box.Waiting()
	if err != nil {
		h.Logger.Warn("the outbox cannot be read", "error", err)
	}
	if n > 0 {
		h.Deliver()
	}
}

// shortID is an id, or its digest if the id is longer than the contract allows.
func shortID(id string) string {
	if len(id) > maxID {
		return outbox.Digest(id)
	}
	return id
}
