package llm

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Nanobot's memories (the conditions rolling_summary, layered_memory, ledger_memory): consolidation by the tool save_memory, archive by marked lines, Dream by
// edit tools, extraction into ledger events.
//
// What the rules rely on, for those who write the prompts: messages stand on lines "[time] ROLE: text"; everything before the first such line is what is
// already known (for save_memory: the present memory); Dream shows each file under a heading line that names it (SOUL.md, USER.md, MEMORY.md) and the
// history under a heading with "History"; the archive instruction contains "(nothing)"; the ledger's contains "event_type" and "predicate".
var nanobotRules = []promptRule{
	{purpose: "nanobot.consolidate", match: func(p *Prompt, _ string) bool { return p.Has("save_memory") }, answer: nanobotConsolidate},
	{purpose: "nanobot.dream", match: func(p *Prompt, _ string) bool { return p.Has("edit_file") }, answer: nanobotDream},
	{purpose: "nanobot.dream_analysis", match: func(p *Prompt, text string) bool { return len(p.Tools) == 0 && strings.Contains(text, "[SKIP]") }, answer: nanobotAnalyse},
	{purpose: "nanobot.ledger", match: func(p *Prompt, text string) bool {
		return len(p.Tools) == 0 && strings.Contains(text, "event_type") && strings.Contains(text, "predicate")
	}, answer: nanobotLedger},
	{purpose: "nanobot.archive", match: func(p *Prompt, text string) bool { return len(p.Tools) == 0 && strings.Contains(text, "(nothing)") }, answer: nanobotArchive},
}

// nanobotConsolidate keeps every old line that no new statement replaces, and adds the lasting statements, each with its day.
func nanobotConsolidate(p *Prompt, text string) Answer {
	known, turns := splitKnown(p.Last("user"))
	var lines []string
	for _, line := range strings.Split(known, "\n") {
		if bullet := strings.TrimSpace(line); strings.HasPrefix(bullet, "- ") {
			lines = append(lines, bullet)
		}
	}
	memory := mergeLines(lines, lastingLines(turns))
	update := "# Long-term Memory\n"
	if len(memory) > 0 {
		update += "\n" + strings.Join(memory, "\n") + "\n"
	}
	at, said := "?", []string{}
	for _, t := range turns {
		if at == "?" && t.Time != "" {
			at = t.Time
		}
		if t.Role == "user" && t.Text != "" {
			said = append(said, strings.Join(Sentences(t.Text), " "))
		}
	}
	entry := "[" + strings.Replace(at, "T", " ", 1) + "] The user said: " + clip(strings.Join(said, " "), 600)
	return Answer{Calls: []Call{{Name: "save_memory", Arguments: toJSON(map[string]string{"history_entry": entry, "memory_update": update})}}}
}

// splitKnown cuts a prompt at its first message line.
func splitKnown(text string) (known string, turns []Turn) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if t, ok := turnOf(line); ok && t.Time != "" {
			return strings.Join(lines[:i], "\n"), Turns(strings.Join(lines[i:], "\n"))
		}
	}
	return text, nil
}

type memoryLineOf struct {
	text string
	Statement
}

// lastingLines are the statements of the user that are worth keeping, as list lines with their day.
func lastingLines(turns []Turn) []memoryLineOf {
	var out []memoryLineOf
	for _, t := range turns {
		if t.Role != "user" {
			continue
		}
		name, text := "", t.Text
		if m := named.FindStringSubmatch(text); m != nil { // in a group each message begins with who spoke
			name, text = m[0], strings.TrimPrefix(text, m[0])
		}
		for _, s := range ReadAll("The user", text) {
			if !s.Lasting {
				continue
			}
			s.Text = name + s.Text
			line := "- " + s.Text
			if len(t.Time) >= 10 {
				line += " (" + t.Time[:10] + ")"
			}
			out = append(out, memoryLineOf{line, s})
		}
	}
	return out
}

var named = regexp.MustCompile(`^\p{Lu}\p{Ll}+: `)

var dayMark = regexp.MustCompile(` \(\d{4}-\d\d-\d\d\)$`)

// mergeLines drops the old lines that a new statement replaces or repeats, and appends the new ones.
func mergeLines(old []string, added []memoryLineOf) []string {
	lines := append([]string{}, old...)
	for _, a := range added {
		var kept []string
		for _, line := range lines {
			said := dayMark.ReplaceAllString(strings.TrimPrefix(line, "- "), "")
			older, _ := Read("The user", said)
			if said == a.Text || a.Replaces(older) {
				continue
			}
			kept = append(kept, line)
		}
		lines = append(kept, a.text)
	}
	return lines
}

// nanobotArchive lists the lasting statements with their marks, or says "(nothing)".
func nanobotArchive(p *Prompt, _ string) Answer {
	_, turns := splitKnown(p.Last("user"))
	var lines []string
	for _, l := range lastingLines(turns) {
		mark := "durable"
		if l.Change {
			mark = "correction"
		}
		lines = append(lines, "- ["+mark+"] "+strings.TrimPrefix(l.text, "- "))
	}
	if lines == nil {
		return Answer{Text: "(nothing)"}
	}
	return Answer{Text: strings.Join(lines, "\n")}
}

// nanobotDream edits in its first answer and reports in its second.
func nanobotDream(p *Prompt, text string) Answer {
	for _, m := range p.Messages {
		if m.Role == "tool" {
			return Answer{Text: "Done."}
		}
	}
	prompt := p.Last("user")
	files, history := dreamFiles(prompt)
	var calls []Call
	for _, path := range []string{"SOUL.md", "USER.md", "memory/MEMORY.md"} {
		var added []memoryLineOf
		for _, f := range history {
			if fileFor(f.Statement) == path {
				added = append(added, f)
			}
		}
		if len(added) == 0 {
			continue
		}
		call := dreamEdit(path, files[path], added, p.Has("write_file"))
		if call.Name != "" {
			calls = append(calls, call)
		}
	}
	if calls == nil {
		return Answer{Text: "Nothing to change."}
	}
	for i := range calls {
		calls[i].ID = "dream_" + itoa(i+1)
	}
	return Answer{Calls: calls}
}

// dreamEdit replaces a file's list by the merged one: an edit of the old lines, or a first content.
func dreamEdit(path, content string, added []memoryLineOf, canWrite bool) Call {
	var old []string
	for _, line := range strings.Split(content, "\n") {
		if strings.HasPrefix(line, "- ") {
			old = append(old, line)
		}
	}
	merged := mergeLines(old, added)
	if strings.Join(merged, "\n") == strings.Join(old, "\n") {
		return Call{}
	}
	trimmed := strings.TrimSpace(content)
	blank := trimmed == "" || trimmed == "(empty)"
	if blank {
		text := strings.Join(merged, "\n") + "\n"
		if canWrite {
			return Call{Name: "write_file", Arguments: toJSON(map[string]any{"path": path, "content": text})}
		}
		return Call{Name: "edit_file", Arguments: toJSON(map[string]any{"path": path, "old_text": "", "new_text": text})}
	}
	from := strings.Join(old, "\n")
	if len(old) == 0 || !strings.Contains(content, from) {
		all := strings.Split(strings.TrimRight(content, "\n"), "\n")
		from = all[len(all)-1]
		var fresh []string
		for _, a := range added {
			fresh = append(fresh, a.text)
		}
		return Call{Name: "edit_file", Arguments: toJSON(map[string]any{"path": path, "old_text": from, "new_text": from + "\n" + strings.Join(fresh, "\n")})}
	}
	return Call{Name: "edit_file", Arguments: toJSON(map[string]any{"path": path, "old_text": from, "new_text": strings.Join(merged, "\n")})}
}

var (
	fileHeading = regexp.MustCompile(`^#+ .*?\b(SOUL\.md|USER\.md|MEMORY\.md)\b`)
	marked      = regexp.MustCompile(`^- \[(permanent|durable|ephemeral|correction|skip)\] `)
	timed       = regexp.MustCompile(`^\[([^\]]+)\] ?(.*)$`)
)

// dreamFiles reads the files and the history of a Dream prompt. History lines are marked facts, or text whose lasting sentences count.
func dreamFiles(prompt string) (files map[string]string, history []memoryLineOf) {
	files = map[string]string{}
	part, at := "", ""
	for _, line := range strings.Split(prompt, "\n") {
		if m := fileHeading.FindStringSubmatch(line); m != nil {
			part = m[1]
			if part == "MEMORY.md" {
				part = "memory/MEMORY.md"
			}
			continue
		}
		if strings.HasPrefix(line, "#") && strings.Contains(line, "History") {
			part = "history"
			continue
		}
		if part != "history" {
			if part != "" {
				files[part] += line + "\n"
			}
			continue
		}
		if m := timed.FindStringSubmatch(line); m != nil {
			at, line = m[1], m[2]
		}
		mark := ""
		if m := marked.FindStringSubmatch(line); m != nil {
			mark, line = m[1], strings.TrimPrefix(line, m[0])
		}
		if mark == "skip" {
			continue
		}
		line = strings.TrimPrefix(line, "- ")
		day := dayMark.FindString(line)
		for _, s := range ReadAll("The user", dayMark.ReplaceAllString(line, "")) {
			if mark == "" && !s.Lasting {
				continue
			}
			s.Change = s.Change || mark == "correction"
			text := "- " + s.Text + day
			if day == "" && len(at) >= 10 {
				text += " (" + at[:10] + ")"
			}
			history = append(history, memoryLineOf{text, s})
		}
	}
	return files, history
}

var aboutAgent = regexp.MustCompile(`(?i)\b(?:answer|reply|write to me|call me|talk to me|be (?:brief|short|formal))\b`)
var aboutWork = regexp.MustCompile(`(?i)\b(?:project|repository|team|release|deadline|server|script|at work)\b`)

// fileFor puts what concerns the agent into SOUL.md, work into MEMORY.md and the person into USER.md.
func fileFor(s Statement) string {
	switch {
	case aboutAgent.MatchString(s.Text):
		return "SOUL.md"
	case aboutWork.MatchString(s.Text):
		return "memory/MEMORY.md"
	}
	return "USER.md"
}

func nanobotAnalyse(p *Prompt, _ string) Answer {
	_, history := dreamFiles(p.Last("user"))
	var lines []string
	for _, h := range history {
		tag := map[string]string{"SOUL.md": "SOUL", "USER.md": "USER", "memory/MEMORY.md": "MEMORY"}[fileFor(h.Statement)]
		lines = append(lines, "["+tag+"] "+strings.TrimPrefix(h.text, "- "))
	}
	if lines == nil {
		return Answer{Text: "[SKIP] no new information"}
	}
	return Answer{Text: strings.Join(lines, "\n")}
}

// nanobotLedger makes one event of each lasting statement: an add, or the change of the entry in the prompt that it replaces.
func nanobotLedger(p *Prompt, _ string) Answer {
	text := p.Last("user")
	known, turns := splitKnown(text)
	if turns == nil {
		turns, known = Turns(text), ""
	}
	entries := ledgerEntries(known)
	events := []any{}
	for _, l := range lastingLines(turns) {
		event := map[string]any{"event_type": "add", "subject": "user", "predicate": strings.ToLower(l.Relation), "object": l.Object, "scope": "permanent",
			"topic": strings.ReplaceAll(topicOf(l.Statement), " ", "_"), "confidence": 0.9, "sensitivity": "normal", "evidence": l.Text, "parent_id": nil}
		if l.Relation == "SAID" {
			event["predicate"] = "said"
		}
		for _, e := range entries {
			older, _ := Read("user", "I "+strings.ReplaceAll(e.Predicate, "_", " ")+" "+e.Object)
			if l.Replaces(older) {
				event["event_type"], event["parent_id"] = "modify", e.ID
				event["subject"], event["predicate"] = e.Subject, e.Predicate
			}
		}
		events = append(events, event)
	}
	return Answer{Text: toJSON(events)}
}

type ledgerEntry struct{ ID, Subject, Predicate, Object string }

// ledgerEntries finds the entries that a prompt shows, one JSON object a line.
func ledgerEntries(text string) []ledgerEntry {
	var out []ledgerEntry
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(strings.TrimPrefix(strings.TrimSpace(line), "- "), ",")
		var e ledgerEntry
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &e) == nil && e.ID != "" && e.Predicate != "" {
			out = append(out, e)
		}
	}
	return out
}
