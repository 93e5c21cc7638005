package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// oldestFirst lists all commits by time; commits of the same time follow their parents.
func (l *ledger) oldestFirst() (list []*commit, byID map[string]*commit) {
	byID = map[string]*commit{}
	for item := range l.Values(commitPrefix) {
		k, err := readCommit(strings.TrimPrefix(item.Key, commitPrefix), item.Value)
		if err != nil {
			l.Fail(err)
			return nil, byID
		}
		byID[k.ID] = k
		list = append(list, k)
	}
	depth := map[string]int{"": 0}
	for id := range byID {
		var chain []string
		for ; byID[id] != nil; id = byID[id].ParentID {
			if _, known := depth[id]; known {
				break
			}
			chain = append(chain, id)
		}
		for _, id := range slices.Backward(chain) {
			depth[id] = depth[byID[id].ParentID] + 1
		}
	}
	slices.SortFunc(list, func(a, b *commit) int {
		if c := strings.Compare(a.Timestamp, b.Timestamp); c != 0 {
			return c
		}
		if c := depth[a.ID] - depth[b.ID]; c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list, byID
}

// queryGraph draws the commits of all branches as text.
func (l *ledger) queryGraph(p *params, answer *wirejson.Encoder) {
	format := p.oneOf("format", "mermaid", "timeline")
	p.rejectUnknown()
	list, byID := l.oldestFirst()
	if format == "timeline" {
		answer.Str(timelineOf(list))
	} else {
		answer.Str(mermaid(list, byID))
	}
}

// maxDrawn is the maximum number of commits in a graph.
const maxDrawn = 200

// mermaid draws commits as a gitGraph.
func mermaid(list []*commit, byID map[string]*commit) string {
	var b strings.Builder
	b.WriteString("gitGraph\n")
	line := func(words ...string) { b.WriteString("  " + strings.Join(words, " ") + "\n") }
	drawn, tips, on := map[string]bool{}, map[string]bool{mainBranch: true}, mainBranch
	for i, k := range list {
		if i == maxDrawn {
			b.WriteString("%% the first " + sdk.Itoa(maxDrawn) + " of " + sdk.Itoa(len(list)) + " commits\n")
			break
		}
		if !tips[k.Branch] {
			if parent := byID[k.ParentID]; parent != nil && drawn[parent.ID] && parent.Branch != on {
				line("checkout", quoted(parent.Branch))
			}
			line("branch", quoted(k.Branch))
			tips[k.Branch], on = true, k.Branch
		}
		if k.Branch != on {
			line("checkout", quoted(k.Branch))
			on = k.Branch
		}
		from, picked := byID[k.MergeParentID], ""
		_ = object.Decode(k.Metadata, object.Optional("cherry_picked_from", &picked)) // of another type: none
		switch {
		case from != nil && drawn[from.ID] && from.Branch != k.Branch && drawn[k.ParentID]:
			line("merge", quoted(from.Branch), "id:", quoted(k.label()))
		case picked != "":
			line("commit id:", quoted(k.label()), "tag:", quoted("cherry-pick "+short(picked)))
		default:
			line("commit id:", quoted(k.label()))
		}
		drawn[k.ID] = true
	}
	return b.String()
}

// quoted prevents a name from being read as a keyword.
func quoted(s string) string { return `"` + s + `"` }

// short returns the beginning of an id.
func short(id string) string { return id[:min(8, len(id))] }

// label returns a commit's id and message, without characters that end a quoted text.
func (k *commit) label() string {
	message := strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case strings.ContainsRune("[](){}<>\\", r) || r < ' ' || r == 0x7f:
			return ' '
		}
		return r
	}, k.Message)
	if cut := []rune(message); len(cut) > 60 {
		message = string(cut[:60])
	}
	return short(k.ID) + ": " + message
}

// timelineOf returns a line for each commit, by day.
func timelineOf(list []*commit) string {
	var b strings.Builder
	day := ""
	for _, k := range list {
		if d, _, _ := strings.Cut(k.Timestamp, "T"); d != day {
			day = d
			b.WriteString(day + "\n")
		}
		clock := strings.TrimSuffix(strings.TrimPrefix(k.Timestamp, day+"T"), "Z")
		b.WriteString("  " + clock + " " + k.Branch + " " + short(k.ID) + " " + k.Message + "\n")
	}
	return b.String()
}

// queryStats counts the contents of the ledger.
func (l *ledger) queryStats(p *params, answer *wirejson.Encoder) {
	p.rejectUnknown()
	current, _ := l.head()
	branches, commits := int64(len(l.branches())), int64(0)
	first, last := "", ""
	list, _ := l.oldestFirst()
	if commits = int64(len(list)); commits > 0 {
		first, last = list[0].Timestamp, list[commits-1].Timestamp
	}
	events := map[string]int64{}
	for item := range l.Values(eventPrefix) {
		e, err := readEvent(strings.TrimPrefix(item.Key, eventPrefix), item.Value)
		if err != nil {
			l.Fail(err)
			return
		}
		events[e.Type]++
	}
	active, forgotten, observed := map[string]int64{}, map[string]int64{}, map[string]int64{}
	_, v := l.onView(current)
	for _, part := range []string{itemPart, forgottenPart} {
		for item := range l.Values(v.prefix + part) {
			e := l.unpack(item.Key, item.Value)
			switch kind := e.Scope + "/" + e.Sensitivity; {
			case !l.mayShow(e):
			case !e.active():
				forgotten[kind]++
			case e.observed():
				observed[kind]++
			default:
				active[kind]++
			}
		}
	}
	inbox, dead := l.tally(inboxPrefix).Count, l.tally(deadPrefix).Count
	eventCounts, a, f, o := counts(events), counts(active), counts(forgotten), counts(observed)
	entries := abi.Raw(object.Encode(object.Always("active", &a), object.Always("forgotten", &f),
		object.Always("observed", &o)))
	object.Write(answer, object.Always("branches", &branches), object.Always("commits", &commits),
		object.Always("current_branch", &current), object.Always("dead", &dead), object.Always("entries", &entries),
		object.Always("events", &eventCounts), object.Optional("first_commit_at", &first), object.Always("inbox", &inbox),
		object.Optional("last_commit_at", &last))
}

// counts is an object of numbers.
func counts(of map[string]int64) abi.Raw {
	var e wirejson.Encoder
	e.ObjStart()
	for _, name := range abi.SortedKeys(of) {
		e.FieldStart(name)
		e.Int64(of[name])
	}
	e.ObjEnd()
	return e.Bytes()
}
