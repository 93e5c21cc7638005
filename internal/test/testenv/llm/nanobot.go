package llm

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Nanobot's memories (the conditions rolling_summary, layered_memory, ledger_memory): consolidation by the tool
// save_memory, archive by marked lines, Dream by edit tools, extraction into ledger events.
//
// What the rules rely on, for authors of prompts: messages are on lines "[time] ROLE: text"; everything
// before the first such line is what is already known (for save_memory: the present memory); Dream shows each file
// under a heading line that names it (SOUL.md, USER.md, MEMORY.md) and the history under a heading with "History"; the
// archive instruction contains "(nothing)"; the ledger's contains "event_type" and "predicate".
var nanobotRules = []promptRule{
	{purpose: "nanobot.consolidate", match: func(p *Prompt, _ string) bool {
		return p.Has("save_memory")
	}, answer: nanobotConsolidate},
	{purpose: "nanobot.dream", match: func(p *Prompt, _ string) bool {
		return p.Has("edit_file")
	}, answer: nanobotDream},
	{purpose: "nanobot.dream_analysis", match: func(p *Prompt, text string) bool {
		return len(p.Tools) == 0 && strings.Contains(text, "[SKIP]")
	}, answer: nanobotAnalyse},
	{purpose: "nanobot.ledger", match: func(p *Prompt, text string) bool {
		return len(p.Tools) == 0 && strings.Contains(text, "event_type") && strings.Contains(text, "predicate")
	}, answer: nanobotLedger},
	{purpose: "nanobot.judge", match: func(p *Prompt, text string) bool {
		return strings.Contains(text, "Two memories contradict each other")
	}, answer: nanobotJudge},
	{purpose: "nanobot.persona", match: func(p *Prompt, text string) bool {
		return strings.Contains(text, "Which branch does the conversation belong to")
	}, answer: nanobotPersona},
	{purpose: "nanobot.archive", match: func(p *Prompt, text string) bool {
		return len(p.Tools) == 0 && strings.Contains(text, "(nothing)")
	}, answer: nanobotArchive},
}

// nanobotConsolidate keeps every old line that no new statement replaces, and adds the lasting statements, each with
// its day.
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
	return Answer{Calls: []Call{{Name: "save_memory",
		Arguments: toJSON(map[string]string{"history_entry": entry, "memory_update": update})}}}
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

// lastingLines returns the statements worth keeping, as list lines with their day. In a group, each line names its
// person.
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
			if !worthKeeping(s, name != "") {
				continue
			}
			if name != "" {
				s.Speaker = strings.TrimSuffix(name, ": ")
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

// worthKeeping: what lasts, what was found out or is aimed at, and in a group what was settled; not what the assistant
// is asked to do, nor a mood of the day.
func worthKeeping(s Statement, inGroup bool) bool {
	found := finding.MatchString(s.Text)
	telling := utf8.RuneCountInString(s.Text) >= 12 // "Agreed." settles what only the one before says
	switch {
	case request.MatchString(s.Text):
		return false
	case (s.Relation == "SAID" || s.Relation == "IS") && !found && mood.MatchString(s.Text):
		return false
	}
	return s.Lasting || found || telling && (custom.MatchString(s.Text) || inGroup && settled.MatchString(s.Text))
}

var (
	request = regexp.MustCompile(`(?i)\bplease\b|\b(?:need|want|like) you to\b|\bwant to ask\b|\b(?:give|tell) me\b|请|给我|你给|需要你|想问|告诉你|your (?:advice|suggestions?)\b|你的建议`)
	mood    = regexp.MustCompile(`(?i)\b(?:feel|feels|feeling|felt|tired|anxious|anxiety|worried|these past few days|fine with|sometimes|there (?:staring|standing))\b|感觉|焦虑|心累|这几天|有时候`)
	finding = regexp.MustCompile(`(?i)\b(?:doctor|diagnos\w+|hospital|sprain\w*|injured|recovered|overweight|disease|allerg\w+|goal|target)\b|\d ?(?:kg|cm)\b|医生|诊断|患有|体检|扭伤|康复|目标|\d ?(?:公斤|厘米)`)
	custom  = regexp.MustCompile(`我.{0,4}(?:经常|坚持|习惯|打算|会去|买了|从没|没有吃)`)
	settled = regexp.MustCompile(`(?i)\b(?:must|mandatory|decided|decision|agreed|deadline|milestone|freeze|frozen|launch\w*|go live|scope|responsible|metrics?|plan|ttl|threshold)\b|\bI(?:'ll| will) (?:take|own|handle|build|set up|lead)\b|必须|决定|定为|先定|再定|截止|冻结|负责|改为|目标|里程碑|指标|阈值|方案|计划|路径|[:：]我来|我来[。，；！]|我(?:来|搭|负责|跟进|接入|做了|会做)`)
)

var named = regexp.MustCompile(`^\p{Lu}\p{Ll}+: `)

var dayMark = regexp.MustCompile(` \(\d{4}-\d\d-\d\d\)$`)

// mergeLines drops the old lines that a new statement replaces or repeats, and appends the new ones. Only a statement
// that changes something replaces one, so that the others need not be compared with what each old line says.
func mergeLines(old []string, added []memoryLineOf) []string {
	lines := append([]string{}, old...)
	for _, a := range added {
		var kept []string
		for _, line := range lines {
			said := strings.TrimPrefix(line, "- ")
			if strings.HasSuffix(said, ")") {
				said = dayMark.ReplaceAllString(said, "")
			}
			var older Statement
			if a.Change {
				older, _ = Read("The user", said)
			}
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
		return Call{Name: "edit_file", Arguments: toJSON(map[string]any{"path": path, "old_text": "",
			"new_text": text})}
	}
	from := strings.Join(old, "\n")
	if len(old) == 0 || !strings.Contains(content, from) {
		all := strings.Split(strings.TrimRight(content, "\n"), "\n")
		from = all[len(all)-1]
		var fresh []string
		for _, a := range added {
			fresh = append(fresh, a.text)
		}
		return Call{Name: "edit_file", Arguments: toJSON(map[string]any{"path": path, "old_text": from,
			"new_text": from + "\n" + strings.Join(fresh, "\n")})}
	}
	return Call{Name: "edit_file", Arguments: toJSON(map[string]any{"path": path, "old_text": from,
		"new_text": strings.Join(merged, "\n")})}
}

var (
	fileHeading = regexp.MustCompile(`^#+ .*?\b(SOUL\.md|USER\.md|MEMORY\.md)\b`)
	marked      = regexp.MustCompile(`^- \[(permanent|durable|ephemeral|correction|skip)\] `)
	timed       = regexp.MustCompile(`^\[([^\]]+)\] ?(.*)$`)
)

// dreamFiles reads the files and the history of a Dream prompt. History lines are marked facts, or text whose lasting
// sentences count.
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
			if mark == "" && !worthKeeping(s, named.MatchString(line)) {
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

// fileFor puts what concerns the agent into SOUL.md, work and what the people of a group said into MEMORY.md, and the
// person into USER.md.
func fileFor(s Statement) string {
	switch {
	case named.MatchString(s.Text):
		return "memory/MEMORY.md"
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
		tag := map[string]string{"SOUL.md": "SOUL", "USER.md": "USER",
			"memory/MEMORY.md": "MEMORY"}[fileFor(h.Statement)]
		lines = append(lines, "["+tag+"] "+strings.TrimPrefix(h.text, "- "))
	}
	if lines == nil {
		return Answer{Text: "[SKIP] no new information"}
	}
	return Answer{Text: strings.Join(lines, "\n")}
}

// nanobotLedger makes one event of each lasting statement: an add, or the change of the entry in the prompt that it
// replaces.
func nanobotLedger(p *Prompt, _ string) Answer {
	text := p.Last("user")
	known, turns := splitKnown(text)
	if turns == nil {
		turns, known = Turns(text), ""
	}
	entries := ledgerEntries(known)
	events := []any{}
	for _, l := range lastingLines(turns) {
		event := ledgerEvent(l)
		for _, e := range entries {
			older, _ := Read("user", e.said())
			if l.Replaces(older) {
				event["event_type"], event["parent_id"] = "modify", e.ID
				event["subject"], event["predicate"], event["object"] = e.Subject, e.Predicate, l.Object
			}
		}
		events = append(events, event)
	}
	return Answer{Text: toJSON(events)}
}

// ledgerEvent turns a line into subject, predicate and object if it states them literally. Otherwise the object is the
// whole text.
func ledgerEvent(l memoryLineOf) map[string]any {
	subject, said := "user", strings.TrimRight(l.Text, ".!。！;, ")
	if l.Speaker != "The user" {
		subject, said = l.Speaker, strings.TrimPrefix(said, l.Speaker+": ")
	}
	topic := strings.ReplaceAll(topicOf(l.Statement), " ", "_")
	if topic == "general" {
		topic = ""
	}
	event := map[string]any{"event_type": "add", "subject": subject, "predicate": strings.ToLower(l.Relation),
		"object": l.Object, "scope": "permanent",
		"topic": topic, "confidence": 0.9, "sensitivity": "normal", "evidence": l.Text, "parent_id": nil}
	of := possessed.FindStringSubmatch(said)
	switch {
	case of != nil:
		event["subject"], event["predicate"], event["object"] = subject+"'s "+of[1], of[2], of[3]
	case l.Relation == "SAID" || l.Relation == "IS" || aside.MatchString(l.Object) || 3*len(l.Object) < len(said):
		event["event_type"], event["predicate"], event["object"] = "observe", "said", said
	}
	return event
}

var (
	possessed = regexp.MustCompile(`(?i)^(?:and )?my ([\p{L}\p{N} '-]+?) (is called|are called|is|are) ([^,;:]+)$`)
	// aside is an object that is not a thing, but continues with what the speaker does. A short one is of a longer
	// sentence, which says more.
	aside = regexp.MustCompile(`(?i)[:;]|\b(?:I|I'm|I've|my|me|mine)\b|^(?:a )?bit |^to |我|^有|^点|^吃的|，`)
)

// said is an entry as its speaker would say it.
func (e ledgerEntry) said() string {
	if of, found := strings.CutPrefix(e.Subject, "user's "); found {
		return "My " + of + " " + e.Predicate + " " + e.Object
	}
	return "I " + strings.ReplaceAll(e.Predicate, "_", " ") + " " + e.Object
}

// nanobotJudge decides for what came later: the new fact, or the branch that is merged.
func nanobotJudge(_ *Prompt, text string) Answer {
	if strings.Contains(text, "keep_old") {
		return Answer{Text: "replace"}
	}
	return Answer{Text: "theirs"}
}

var branchLine = regexp.MustCompile(`"name":"([^"]+)","persona":"([^"]+)"`)

// nanobotPersona names the branch whose persona is in the conversation, or no branch.
func nanobotPersona(p *Prompt, _ string) Answer {
	known, turns := splitKnown(p.Last("user"))
	for _, branch := range branchLine.FindAllStringSubmatch(known, -1) {
		for _, t := range turns {
			if strings.Contains(strings.ToLower(t.Text), strings.ToLower(branch[2])) {
				return Answer{Text: toJSON(map[string]any{"branch": branch[1], "confidence": 0.9})}
			}
		}
	}
	return Answer{Text: `{"branch": "", "confidence": 0}`}
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
