package main

import (
	_ "embed" // the text of heartbeat
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// The ledger as one file, for people and for another scope: the query export, and the mutation import, which takes what
// export gave with its history. A ledger of any size is exported by the query files.

// heartbeat is the task for an agent's HEARTBEAT.md.
//
//go:embed heartbeat.md
var heartbeat string

// maxExported is the maximum size of an export in one answer, in bytes.
const maxExported = 8 << 20

// memory is an exported entry, with its branch.
type memory struct {
	*entry
	branch string
}

func (m *memory) members() []object.Member {
	return []object.Member{object.Always("id", &m.EventID), object.Always("subject", &m.Subject),
		object.Always("predicate", &m.Predicate), object.Always("object", &m.Object), object.Always("scope", &m.Scope),
		object.Always("topic", &m.Topic), object.Always("confidence", &m.Confidence),
		object.Always("sensitivity", &m.Sensitivity), object.Always("source", &m.Source),
		object.Optional("evidence", &m.Evidence), object.Always("timestamp", &m.CreatedAt),
		object.Always("branch", &m.branch)}
}

// queryExport exports the memories of a branch, or of all, as JSON or as a Markdown list; with history also every
// commit and event.
//
// Errors: not_found for a branch; too_large.
func (l *ledger) queryExport(p *params, answer *wirejson.Encoder) {
	format, name := p.oneOf("format", "json", "markdown"), p.text("branch")
	history, withPrivate := p.flag("history"), p.flag("include_private")
	p.rejectUnknown()
	list := l.memories(name, withPrivate)
	if format == "markdown" {
		text := markdown(list)
		if history {
			text += l.historyMarkdown()
		}
		answer.Str(text)
	} else {
		l.exportJSON(list, history, answer)
	}
	if len(answer.Bytes()) > maxExported {
		l.Fail(abi.NewError(abi.CodeTooLarge, "the export has more than "+sdk.Itoa(maxExported>>20)+" MiB").
			WithHint("export the ledger as files: memhost export FOLDER"))
	}
}

// memories returns the active entries of a branch; of the current one for "" and "current", of each branch for "all".
func (l *ledger) memories(name string, withPrivate bool) (list []memory) {
	branches := l.branches()
	if name != "all" {
		if name == "current" {
			name = ""
		}
		branches = []*branch{l.branchNamed(name)}
	}
	for _, b := range branches {
		v := l.viewOf(b)
		for item := range l.Values(v.prefix + itemPart) {
			e := l.unpack(item.Key, item.Value)
			if l.mayShow(e) && !l.expired(e) && (withPrivate || e.Sensitivity != private) {
				list = append(list, memory{e, b.Name})
			}
		}
	}
	return list
}

func (l *ledger) exportJSON(list []memory, history bool, answer *wirejson.Encoder) {
	version, branches := int64(1), l.branchList()
	current, _ := l.head()
	var memories wirejson.Encoder
	memories.ArrStart()
	for i := range list {
		object.Write(&memories, list[i].members()...)
	}
	memories.ArrEnd()
	all := abi.Raw(memories.Bytes())
	members := []object.Member{object.Always("version", &version), object.Always("exported_at", &l.Now),
		object.Always("current_branch", &current), object.Always("branches", &branches), object.Always("memories", &all)}
	if history {
		events, commits := l.objects(eventPrefix), l.objects(commitPrefix)
		members = append(members, object.Always("events", &events), object.Always("commits", &commits))
	}
	object.Write(answer, members...)
}

// objects returns all objects of a kind, as a list.
func (l *ledger) objects(prefix string) abi.Raw {
	var list wirejson.Encoder
	list.ArrStart()
	for item := range l.Values(prefix) {
		list.Raw(l.fileOf(prefix, item))
	}
	list.ArrEnd()
	return list.Bytes()
}

// markdown groups memories by topic, then by subject. A memory that several branches share is one line.
func markdown(list []memory) string {
	var b strings.Builder
	listed := map[string]bool{}
	list = slices.DeleteFunc(slices.Clone(list), func(m memory) bool {
		again := listed[m.EventID]
		listed[m.EventID] = true
		return again
	})
	slices.SortStableFunc(list, func(a, b memory) int {
		return strings.Compare(a.Topic+"\x00"+a.Subject, b.Topic+"\x00"+b.Subject)
	})
	topic, subject := "\x00", "\x00"
	for i, m := range list {
		if i > 0 && (m.Topic != topic || m.Subject != subject) {
			b.WriteByte('\n')
		}
		if m.Topic != topic {
			topic, subject = m.Topic, "\x00"
			title := topic
			if title == "" {
				title = "General"
			}
			b.WriteString("## " + title + "\n\n")
		}
		if m.Subject != subject {
			subject = m.Subject
			b.WriteString("### " + subject + "\n\n")
		}
		b.WriteString("- " + strings.ReplaceAll(m.Predicate+" "+m.Object, "\n", "\n  ") + "\n")
	}
	return b.String()
}

// historyMarkdown lists the commits, newest first, each with its events.
func (l *ledger) historyMarkdown() string {
	var b strings.Builder
	b.WriteString("\n## History\n\n")
	list, _ := l.oldestFirst()
	for _, k := range slices.Backward(list) {
		b.WriteString("- " + k.Timestamp + " `" + short(k.ID) + "` on " + k.Branch + ": " + inLine(k.Message) + "\n")
		for _, id := range k.Events {
			e := l.theEvent(id)
			text := strings.TrimSpace(e.Subject + " " + e.Predicate + " " + e.Object)
			b.WriteString("    - `" + signs[e.Type] + "` " + inLine(text) + "\n")
		}
	}
	return b.String()
}

func inLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }

// memoryFile is a summary for people, one of the exported files. It is derived from the ledger, and an import ignores
// it.
const memoryFile = "MEMORY.md"

// memoryText returns the summary: the memories of the current branch.
func (l *ledger) memoryText() string {
	current, _ := l.head()
	return "# Memory of the branch " + current + "\n\n" + markdown(l.memories("", false))
}

// importOneFile imports an export with history.
//
// Errors: those of importFiles; invalid_argument for a file in another format.
func (l *ledger) importOneFile(p *params) *abi.MutationReceipt {
	file := p.raw("export", wirejson.Object)
	p.rejectUnknown()
	var current string
	var branches, events, commits abi.Raw
	version := int64(0)
	err := object.Decode(file, object.Always("version", &version), object.Always("current_branch", &current),
		object.Always("branches", &branches), object.Optional("events", &events), object.Optional("commits", &commits))
	if err != nil || version != 1 || commits == nil {
		l.Fail(abi.NewError(abi.CodeInvalidArgument, "params.export: this is no export with history").
			WithHint("write one: memhost ledger export --history -o FILE"))
		return nil
	}
	count := l.importAll("events/", events) + l.importAll("commits/", commits)
	l.importOne(branchesFile, `{"version":1,"branches":`+string(branches)+"}\n")
	l.importOne(headFile, current+"\n")
	l.importEnd()
	return l.receiptOf(applied, nil, note{"objects", sdk.Number(count)})
}

// importAll imports a list of objects. A program that rewrote the file may have added blanks, which the ids do not
// cover.
func (l *ledger) importAll(dir string, list abi.Raw) (count int64) {
	if len(list) == 0 {
		return 0
	}
	err := wirejson.DecodeBytes(list).Arr(func(d *wirejson.Decoder) error {
		raw, err := d.Raw()
		if err != nil {
			return err
		}
		id := ""
		if err := object.Decode(raw, object.Always("id", &id)); err != nil {
			return err
		}
		text, err := object.Compact(raw)
		if err != nil {
			return err
		}
		if !l.importOne(dir+id+".json", text) {
			return wrong("params.export", "has an object without an id in "+dir)
		}
		count++
		return l.Err()
	})
	l.Fail(err)
	return count
}
