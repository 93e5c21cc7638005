package main

import (
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/chat"
)

const dreamKey = "dream"

// unread reports whether there are entries after Dream's cursor.
func (m *memory) unread(d *model.Progress) bool {
	list, _ := m.newest(d.Cursor, 1)
	return len(list) > 0
}

// lastCursor returns the cursor of the history's newest entry, 0 if it is empty.
func (m *memory) lastCursor() int64 {
	list, _ := m.newest(-1, 1)
	if len(list) == 0 {
		return 0
	}
	return list[0].cursor
}

// Setup prepares nothing, unless Dream is off: then the history counts as read, so that it does not pile up in prompts.
func (m *memory) Setup() {
	d := model.ReadProgress(m.State, dreamKey)
	list, _ := m.newest(d.Cursor, 1)
	if !m.settings.dream.on && !m.ReadOnly && len(list) > 0 {
		d.Cursor = list[0].cursor
		d.Save(m.State, dreamKey)
	}
}

// Waits adds Dream's work if Dream runs after every archive.
func (m *memory) Waits(answer *abi.BackendReadiness) {
	d := model.ReadProgress(m.State, dreamKey)
	if !m.settings.dream.on || !m.settings.dream.afterSession || answer.Status == abi.ReadinessFailed || !m.unread(&d) {
		return
	}
	answer.Status = abi.ReadinessPending
	answer.Warnings = append(answer.Warnings, "llm_work_waits: Dream has not read all of the history")
	if d.Waits(m.NowMS(), m.lastCursor()) {
		answer.Status = abi.ReadinessFailed
		answer.Warnings = append(answer.Warnings, d.Reason+": Dream, "+d.Story(m.lastCursor()))
	}
}

// BeforeWork requests the archive of idle sessions.
func (m *memory) BeforeWork() {
	if m.settings.idleMS == 0 {
		return
	}
	for _, s := range nanobot.Sessions(m.State) {
		if s.Open() > 0 && m.NowMS()-s.Arrived >= m.settings.idleMS {
			s.IdleTo = s.Messages
			s.Save(m.State)
		}
	}
}

// AfterWork runs Dream while there are entries, it is due, and more than reserve ms are left.
func (m *memory) AfterWork(reserve int64) {
	s := &m.settings.dream
	d, now := model.ReadProgress(m.State, dreamKey), m.NowMS()
	due := s.afterSession || m.due(&d)
	for s.on && due && !d.Waits(now, m.lastCursor()) && m.Remaining() > reserve && m.OK() {
		if run := m.dream(&d, "scheduled run"); run.reason != "completed" {
			break
		}
	}
}

// maxClockGapMS is the maximum distance between the events' times and the host's clock at which a scope counts as in
// current use.
const maxClockGapMS = 24 * 60 * 60_000

// due reports whether the schedule requires a run. It uses the times of the entries, so that a replay has its runs at
// the same points of the timeline, on any day and at any pace. If the last run read entries of the current day, it also
// uses the host's clock, because time then passes without entries.
func (m *memory) due(d *model.Progress) bool {
	if d.Ran == 0 {
		return m.scheduled(0, m.NowMS())
	}
	newest, _ := m.newest(-1, 1)
	if len(newest) > 0 && d.RanAt != 0 && m.scheduled(d.RanAt, newest[0].unixMS()) {
		return true
	}
	replayed := d.RanAt != 0 && (d.Ran-d.RanAt > maxClockGapMS || d.RanAt-d.Ran > maxClockGapMS)
	return !replayed && (m.scheduled(d.Ran, m.NowMS()) || m.NowMS() < d.Ran)
}

// scheduled reports whether a time of the schedule lies between two times, in ms since 1970.
func (m *memory) scheduled(since, until int64) bool {
	s := &m.settings.dream
	if s.cron != nil {
		return s.cron.hasTime(time.UnixMilli(since), time.UnixMilli(until))
	}
	return until-since >= s.intervalMS
}

// dreamResult is the outcome of one run.
type dreamResult struct {
	// kind is "manual run" or "scheduled run".
	kind string
	// reason is completed, nothing_to_do, max_iterations, or the model's failure.
	reason  string
	changed []string
	// edits counts the calls that edited or wrote a file. summary is the model's final text.
	edits   int
	summary string
	// turns is the conversation with the model, starting with its analysis if there are two phases.
	turns   []chat.Message
	skills  folder
	version string
	usage   model.Usage
}

// dream lets the model edit the files, given the oldest entries that it has not read. The cursor moves when the run is
// completed; edits are kept in any case.
func (m *memory) dream(d *model.Progress, kind string) *dreamResult {
	var batch []entry
	for x := range m.history(nil) {
		if int64(len(batch)) == m.settings.dream.batch {
			break
		}
		if x.cursor > d.Cursor {
			batch = append(batch, x)
		}
	}
	run := &dreamResult{kind: kind, reason: "nothing_to_do"}
	if len(batch) == 0 {
		return run
	}
	files, before := m.folder(), d.Cursor
	last := batch[len(batch)-1]
	failed := m.edit(files, batch, run)
	d.Ran, d.RanAt, d.Shown = m.NowMS(), last.unixMS(), max(d.Shown, last.cursor)
	if failed != nil {
		run.reason = abi.AsError(failed).Message
		if !model.OutOfTime(m.Call, failed) {
			d.Note(m.State, failed, m.Model.Retries, m.lastCursor())
		}
	} else {
		d.Failure = model.Failure{}
		if run.reason == "completed" {
			d.Cursor = last.cursor
		}
	}
	run.usage.Add(m.State)
	if m.settings.versions {
		subject := "dream: " + sdk.OneLine(last.at) + ", " + nanobot.Plural(run.edits, "change") + ", " + kind
		run.version = m.commit(files, last.moment(), subject, run.summary, before, d.Cursor)
	}
	m.keepSession(run, &batch[0], &last)
	all := append(slices.Clip(files), run.skills...)
	for _, f := range all {
		if f.text != f.before {
			run.changed = append(run.changed, f.path)
		}
	}
	m.save(all)
	d.Save(m.State, dreamKey)
	*d = model.ReadProgress(m.State, dreamKey) // for the next run, including its version
	m.compact(d.Cursor)
	return run
}

// edit is the tool loop. It ends when the model answers without a call.
func (m *memory) edit(files folder, batch []entry, run *dreamResult) error {
	history := ""
	for _, x := range batch {
		history += "[" + sdk.OneLine(x.at) + "] " + entryText(nanobot.Clip(x.content, int(m.settings.dream.entryChars))) +
			"\n"
	}
	desk := m.desk(files)
	about := m.filesPrompt(desk)
	prompt := about + "## Conversation History\n" + history
	if m.settings.dream.twoPhase {
		r := model.Prompt(m.settings.prompts.analyse, prompt)
		run.turns = r.Messages
		answer, err := m.ask(r, run)
		if err != nil {
			return err
		}
		run.turns = append(run.turns, chat.Message{Role: "assistant", Content: answer.Text})
		facts := analysis(answer.Text)
		if facts == "" {
			run.reason = "completed"
			return nil
		}
		prompt = about + "## Conversation History (analysed)\n" + facts
	}
	r := model.Prompt(m.instruction(), prompt)
	r.Tools = dreamTools
	analysed := run.turns
	run.turns = append(slices.Clip(analysed), r.Messages...)
	for round := range m.settings.dream.rounds {
		answer, err := m.ask(r, run)
		if err != nil {
			return err
		}
		if len(answer.Calls) == 0 {
			if round == 0 && strings.TrimSpace(answer.Text) == "" {
				return model.BadOutput("the model answered Dream with nothing", 200, nil)
			}
			run.reason, run.summary = "completed", answer.Text
			run.turns = append(run.turns, chat.Message{Role: "assistant", Content: answer.Text})
			return nil
		}
		r.Messages = append(r.Messages, chat.Message{Role: "assistant", Content: answer.Text, Calls: answer.Calls})
		for _, call := range answer.Calls {
			if m.settings.dream.skills {
				desk = desk.withSkill(call)
			}
			result := desk.call(call)
			if call.Name != "read_file" && !strings.HasPrefix(result, "Error:") {
				run.edits++
			}
			r.Messages = append(r.Messages, chat.Message{Role: "tool", ToolCallID: call.ID, Content: result})
			run.skills = desk[len(files):]
		}
		run.turns = append(slices.Clip(analysed), r.Messages...)
	}
	run.reason = "max_iterations"
	return nil
}

func (m *memory) ask(r chat.Request, run *dreamResult) (*chat.Answer, error) {
	r.Model = m.settings.dream.model
	return m.Model.Chat(m.State, r, &run.usage)
}

// instructionFile overrides the built-in instruction, as in a workspace of Nanobot.
const instructionFile = "prompts/dream.md"

// instruction returns the configured instruction, the workspace's, or that of the prompt set, in this order.
func (m *memory) instruction() string {
	own, _ := nanobot.KeptFile(m.State, instructionFile)
	switch configured := m.settings.dream.instruction; {
	case strings.TrimSpace(configured) != "":
		return configured
	case strings.TrimSpace(own) != "":
		return nanobot.Clip(own, 32000)
	case m.settings.dream.twoPhase:
		return m.settings.prompts.edit
	}
	return m.settings.prompts.dream
}

// entryText keeps the lines of a list unchanged and indents others, so that none looks like a heading or like another
// entry.
func entryText(text string) string {
	var b strings.Builder
	for i, line := range strings.Split(nanobot.StripBlocks(text), "\n") {
		if i > 0 {
			b.WriteByte('\n')
			if !strings.HasPrefix(line, "- ") {
				b.WriteString("  ")
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

func (m *memory) filesPrompt(files folder) string {
	var b strings.Builder
	b.WriteString("## Current Memory Files\n")
	for _, f := range files {
		if isSkill(f.path) { // read by its tool
			b.WriteString("### " + sdk.OneLine(f.path) + "\n\n")
			continue
		}
		text := nanobot.Clip(f.text, int(m.settings.dream.fileChars))
		if strings.TrimSpace(text) == "" {
			text = "(empty)"
		}
		text = strings.ReplaceAll("\n"+text, "\n## Conversation History", "\n ## Conversation History")
		b.WriteString("### " + f.path + text + "\n\n")
	}
	return b.String()
}

// analysis keeps the lines of an analysis that are facts; "" if nothing is new.
func analysis(text string) string {
	var b strings.Builder
	for _, line := range strings.Split(text, "\n") {
		for _, mark := range []string{"[USER] ", "[SOUL] ", "[MEMORY] "} {
			if strings.HasPrefix(line, mark) {
				b.WriteString(line + "\n")
			}
		}
	}
	return b.String()
}
