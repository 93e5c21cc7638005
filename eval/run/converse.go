package run

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/simulate"
	"github.com/memhost/memhost/eval/subject"
	"github.com/memhost/memhost/host"
)

// maxTurns limits a conversation whose user neither accepts nor gives up.
const maxTurns = 20

// workspaces is the folder in a cell's folder in which subjects work. Its content is removed after each conversation.
const workspaces = "subjects"

// conversation is a finished conversation that has not been searched for yet.
type conversation struct {
	probe   string
	budget  int64
	opening string
	nonces  []string
	door    *subject.Door       // nil if an earlier process ran it
	script  *journal.Transcript // nil once the session is closed
}

// conversations runs a conversation between a simulated user and the subject for each suitable probe: one with a
// preference in force, or a question whose answer is unknown. The wall is raised. When this returns, every conversation
// has ended and its subject has exited.
func (t *testSession) conversations(ctx context.Context, probes []*pack.Probe) error {
	if t.options.Seat == nil {
		return nil
	}
	preferences, err := t.pack.Preferences(t.id)
	if err != nil {
		return err
	}
	for _, probe := range probes {
		setting := simulate.NewSetting(probe, preferences)
		if !hasConversation(probe, setting) {
			continue
		}
		for _, budget := range t.Lab.SubjectBudgets(t.budgets) {
			a := retrievalKey{probe.ProbeID, budget, 1}
			if _, held := t.done.transcripts[a]; held {
				continue
			}
			if err := t.converse(ctx, setting, budget); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasConversation reports whether a user can know the right answer.
func hasConversation(probe *pack.Probe, s *simulate.Setting) bool {
	return s.Value != "" || !probe.Gold.Answerable
}

// converse runs one conversation, and journals it when it is over. An interrupted one starts over.
func (t *testSession) converse(ctx context.Context, setting *simulate.Setting, budget int64) error {
	slot, ok := t.slot.(host.Contract)
	if !ok {
		return abi.NewError(abi.CodeUnsupported, "a cassette answers this cell, and a subject retrieves for itself")
	}
	t.note(fmt.Sprintf("conversation about %s, persona %s, session %d", setting.ProbeID, t.id, t.number))
	if err := os.MkdirAll(filepath.Join(t.dir, workspaces), 0o755); err != nil {
		return unusable(err)
	}
	folder, err := filepath.Abs(filepath.Join(t.dir, workspaces)) // the subject's own working directory is another
	if err != nil {
		return unusable(err)
	}
	workspace, err := os.MkdirTemp(folder, "*")
	if err != nil {
		return unusable(err)
	}
	defer os.RemoveAll(workspace)
	session := fmt.Sprintf("test-session-%d-%s-%d", t.number, setting.ProbeID, budget)
	mark := t.nonce(setting.ProbeID, budget)
	door, err := subject.OpenDoor(subject.DoorOptions{Slot: slot, Scope: t.scope, Session: session, Budget: t.Lab.Budget(budget),
		Put: rundir.Contexts(t.folder).Put, Foreign: func(text string) string { return foreignMark(text, mark) }})
	if err != nil {
		return err
	}
	t.doors = append(t.doors, door)
	person, err := t.knownUser()
	if err != nil {
		return err
	}
	start := &subject.Start{Type: "start", Session: session, Scope: t.scope, Door: door.Address, Workspace: workspace, User: person,
		Scenario: setting.Scenario, Context: setting.Context, Attribute: setting.Attribute, Now: setting.Now,
		MaxTokens: budget, MinTokens: t.Lab.MinTokens[budget], Put: rundir.Blobs(t.folder).Put}
	script := &journal.Transcript{ProbeID: setting.ProbeID, Budget: budget, Scenario: setting.Scenario,
		Context: setting.Context, Attribute: setting.Attribute, Seat: t.options.Seat.Kind(), Told: person.Name,
		Simulator: t.options.Simulator.Name()}
	user, err := t.options.Simulator.Open(ctx, setting)
	if err == nil {
		err = t.talk(ctx, script, user, start, door, mark)
	} else {
		err = simulatorFailed(script, err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	retrievals, breaches := door.Over()
	script.Retrievals, script.Breaches = retrievals, append(script.Breaches, breaches...)
	script.NotSent = notSent(setting, retrievals)
	line := t.line(journal.KindTranscript)
	line.Transcript = script
	if err := t.journal.Write(line); err != nil {
		return err
	}
	t.done.transcripts[retrievalKey{script.ProbeID, budget, 1}] = searchTargets(script, door)
	return nil
}

// knownUser returns what the subject gets to know about the user: name and profile for no_memory's variant named,
// nothing for other columns, because there the memory has to know them.
func (t *testSession) knownUser() (u subject.User, err error) {
	if !t.provider.Named() {
		return u, nil
	}
	person, err := t.pack.Person(t.id)
	if err == nil && person == nil {
		err = abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("no_memory.variant is named, and the pack has no name for persona %s",
			t.id)).WithHint("leave variant out, or add the pack's " + pack.PeopleFile)
	}
	if err != nil {
		return u, err
	}
	return subject.User{Name: person.Name, Profile: person.Profile}, nil
}

// talk starts the subject, passes texts between it and the user, and ends it.
//
// Errors: the context's, and those of endpoints that are gone. Errors of the subject go into the transcript.
func (t *testSession) talk(ctx context.Context, script *journal.Transcript, user simulate.Conversation, start *subject.Start,
	door *subject.Door, mark string) error {
	agent, err := t.options.Seat.Sit(ctx, start)
	if err != nil {
		script.Exchanges = []journal.Exchange{{User: user.Opening()}}
		return subjectFailed(script, err)
	}
	defer func() { script.Breaches = append(script.Breaches, agent.End(ctx)...) }()
	text := user.Opening()
	for turn := 1; ; turn++ {
		door.Turn(turn)
		nonce := fmt.Sprintf("%st%d", mark, turn)
		script.Exchanges = append(script.Exchanges, journal.Exchange{User: text, Nonce: nonce})
		exchange := &script.Exchanges[turn-1]
		began := time.Now()
		answer, err := agent.Say(ctx, fmt.Sprintf("%s (%s)", text, nonce))
		exchange.LatencyMS = since(began)
		if err != nil {
			return subjectFailed(script, err)
		}
		exchange.Agent, exchange.Usage, exchange.Model, exchange.Stub = answer.Text, answer.Usage, answer.Model, answer.Stub
		exchange.RequestSHA256, exchange.AnswerSHA256 = answer.RequestSHA256, answer.AnswerSHA256
		reaction, err := user.React(ctx, answer.Text)
		if err != nil {
			return simulatorFailed(script, err)
		}
		exchange.Action, exchange.SimulatorUsage = reaction.Action, reaction.Usage
		switch {
		case reaction.Action == journal.ActionAccept:
			script.Ended = journal.EndedAccepted
			return nil
		case reaction.Action == journal.ActionGiveUp:
			script.Ended = journal.EndedGivenUp
			return nil
		case turn == maxTurns:
			script.Ended = journal.EndedTurns
			return nil
		}
		text = reaction.Text
	}
}

// subjectFailed ends a transcript with the subject's error. It returns any other error.
func subjectFailed(script *journal.Transcript, err error) error {
	if !subject.IsFailure(err) {
		return err
	}
	script.Ended, script.Error = journal.EndedSubject, abi.AsError(err)
	return nil
}

// simulatorFailed ends a transcript for which the user's model gave no answer. If its endpoint is gone the cell ends.
func simulatorFailed(script *journal.Transcript, err error) error {
	e := abi.AsError(err)
	if affectsAllRequests(e.Code) {
		return err
	}
	script.Ended, script.Error = journal.EndedSimulator, e
	return nil
}

// notSent lists what the session has but the subject passed to none of its retrievals.
func notSent(setting *simulate.Setting, retrievals []journal.Retrieval) (list []string) {
	if len(retrievals) == 0 {
		return nil
	}
	for _, label := range []struct {
		name, value string
		sent        func(r journal.Retrieval) string
	}{{"context", setting.Context, func(r journal.Retrieval) string { return r.Context }},
		{"attribute", setting.Attribute, func(r journal.Retrieval) string { return r.Attribute }}} {
		carries := func(r journal.Retrieval) bool { return label.sent(r) == label.value }
		if label.value != "" && !slices.ContainsFunc(retrievals, carries) {
			list = append(list, label.name)
		}
	}
	return list
}

// nonceForm matches a nonce in any text. Its first part identifies the conversation, its second the turn.
var nonceForm = regexp.MustCompile(`(?i)\b(vq[0-9a-f]{10})t[0-9]+\b`)

// nonce is the first part of a conversation's nonces. It is the same in every cell and after a resumption.
func (t *testSession) nonce(probe string, budget int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00nonce\x00%s\x00%d\x00%s\x00%d", t.Lab.Seed, t.id, t.number, probe, budget))
	return fmt.Sprintf("vq%x", sum[:5])
}

// foreignMark returns the first nonce in a text that does not belong to the conversation of mark; empty if there is
// none.
func foreignMark(text, mark string) string {
	for _, m := range nonceForm.FindAllStringSubmatch(text, -1) {
		if !strings.EqualFold(m[1], mark) {
			return m[0]
		}
	}
	return ""
}

// searchTargets returns what has to be searched for after a transcript.
func searchTargets(script *journal.Transcript, door *subject.Door) *conversation {
	c := &conversation{probe: script.ProbeID, budget: script.Budget, door: door, script: script}
	for _, e := range script.Exchanges {
		if c.opening == "" {
			c.opening = e.User
		}
		if e.Nonce != "" {
			c.nonces = append(c.nonces, e.Nonce)
		}
	}
	return c
}

// findNonces searches memory for what users said in the conversations of the previous test session, and closes their
// doors. Memory must be ready.
func (p *persona) findNonces(ctx context.Context) error {
	before := p.unsearched
	p.unsearched = nil
	if before == nil || before.done.searched || len(before.done.transcripts) == 0 {
		return nil
	}
	check := &journal.NonceCheck{}
	found := map[string]bool{}
	list := before.finished()
	for _, c := range list {
		check.Nonces += len(c.nonces)
		result, err := p.slot.Retrieve(ctx, &abi.RetrieveRequest{Query: c.opening + " " + strings.Join(c.nonces, " "),
			Scope: p.scope, SessionID: fmt.Sprintf("nonce-check-%d", before.number)})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			if check.Error = abi.AsError(err); affectsAllRequests(check.Error.Code) {
				if err := p.lost(ctx, check.Error); err != nil {
					return err
				}
			}
			continue
		}
		text := result.FormattedContext + "\n" + string(abi.Marshal(&result.Raw))
		for _, nonce := range nonceForm.FindAllString(text, -1) {
			found[strings.ToLower(nonce)] = true
		}
	}
	for _, c := range list {
		late := func(b journal.Breach) {
			check.Breaches = append(check.Breaches, journal.LateBreach{ProbeID: c.probe, Budget: c.budget, Breach: b})
		}
		for _, nonce := range c.nonces {
			if found[nonce] {
				late(journal.Breach{Kind: "nonce_found", Detail: nonce + ", said behind the wall, is in memory"})
			}
		}
		if c.door == nil {
			continue
		}
		for _, b := range c.door.Close() {
			late(b)
		}
	}
	line := before.line(journal.KindNonceCheck)
	line.NonceCheck = check
	before.done.searched = true
	return p.journal.Write(line)
}

// finished returns the session's conversations, in order.
func (t *testSession) finished() []*conversation {
	var list []*conversation
	for _, c := range t.done.transcripts {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *conversation) int {
		if a.probe == b.probe {
			return int(a.budget - b.budget)
		}
		return strings.Compare(a.probe, b.probe)
	})
	return list
}

// closeDoors closes the doors of all conversations.
func (p *persona) closeDoors() {
	for _, d := range p.doors {
		d.Close()
	}
}
