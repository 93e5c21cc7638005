package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// Query answers, besides those of all memories,
//
//	dream_log {sha?}    the newest change by Dream or by a restore, or the given version, with its diff
//	dream_restore {}    the last 10 changes by Dream and restores, newest first, with undone if a restore has undone them
//	dream_diff {from, to?}   what differs between two versions; to is the newest if it is absent
//	dream_sessions {name?}   the stored runs of Dream, newest first; with name one of them, line by line
func (m *memory) Query(r *abi.NativeQuery, answer *wirejson.Encoder) bool {
	switch r.Name {
	case "dream_log":
		m.writeVersion(nanobot.Param(r.Params, "sha"), answer)
	case "dream_restore":
		m.writeVersions(answer)
	case "dream_diff":
		m.writeDiff(nanobot.Param(r.Params, "from"), nanobot.Param(r.Params, "to"), answer)
	case "dream_sessions":
		m.writeSessions(nanobot.Param(r.Params, "name"), answer)
	default:
		return false
	}
	return true
}

// writeVersions writes the last 10 changes of Dream and restores. A restore undoes the versions from the one that it
// names to the one before it, unless a later restore undid it.
func (m *memory) writeVersions(answer *wirejson.Encoder) {
	n, until := 0, ""
	answer.ArrStart()
	defer answer.ArrEnd()
	for v := range m.versions() {
		if n == 10 {
			return
		}
		v.undone = until != ""
		switch {
		case v.undone && strings.HasPrefix(v.sha, until):
			until = ""
		case !v.undone && v.restores():
			until = nanobot.Clip(strings.TrimPrefix(v.message, undoes), shortSHA)
		}
		if v.ofDream() || v.restores() {
			n++
			v.message, _, _ = strings.Cut(v.message, "\n\n")
			v.write(answer)
		}
	}
}

// writeVersion writes one version; its message contains the diff against its parent. The first version has no diff.
func (m *memory) writeVersion(sha string, answer *wirejson.Encoder) {
	if sha != "" {
		m.find(sha).write(answer)
		return
	}
	for v := range m.versions() {
		if v.ofDream() || v.restores() {
			v.write(answer)
			return
		}
	}
	m.Fail(abi.NewError(abi.CodeNotFound, "there is no version of Dream yet"))
}

func (v *version) write(e *wirejson.Encoder) {
	subject, diff, _ := strings.Cut(v.message, "\n\n")
	object.Write(e, object.Always("sha", &v.sha), object.Always("parent", &v.parent), object.Always("time", &v.at),
		object.Always("subject", &subject), object.Optional("summary", &v.summary),
		object.Optional("undone", &v.undone), object.Always("diff", &diff))
}

// writeDiff writes the changes from one version to another, {from, to, diff}.
//
// Errors: those of find; conflict if a version's files were not imported.
func (m *memory) writeDiff(from, to string, answer *wirejson.Encoder) {
	old := m.find(from)
	if to == "" {
		_, head := m.Last(versionLog)
		to = string(head)
	}
	now, diff := m.find(to), ""
	for i, path := range contentFiles {
		text, _, _ := unifiedDiff(path, m.blob(old.tree[i]), m.blob(now.tree[i]))
		diff += text
	}
	object.Write(answer, object.Always("from", &old.sha), object.Always("to", &now.sha), object.Always("diff", &diff))
}

// Mutate does, besides those of all memories,
//
//	archive {session_id}  now: all messages of the session that are not archived yet
//	dream {}              one run, now
//	dream_restore {sha}   rewinds the files to before a version; later changes go, too, and Dream does not make them again
func (m *memory) Mutate(r *abi.NativeMutation, receipt *abi.MutationReceipt) bool {
	details := &receipt.Trace.Details
	switch r.Name {
	case "archive":
		s := nanobot.FindSession(m.State, nanobot.Param(r.Params, "session_id"))
		if s.Open() == 0 {
			break
		}
		var u model.Usage
		if _, failed := m.Archive(s, s.Messages, &u); failed != nil {
			m.Fail(failed)
		}
		receipt.Status, receipt.NativeIDs = "applied", []string{s.NativeID()}
		sdk.Put(details, "llm", u.JSON())
		u.Add(m.State)
		s.Save(m.State)
	case "dream":
		d := model.ReadProgress(m.State, dreamKey)
		run := m.dream(&d, "manual run")
		if run.reason == "completed" || len(run.changed) > 0 {
			receipt.Status = "applied"
		}
		if run.version != "" {
			receipt.NativeIDs = []string{run.version}
		}
		sdk.Put(details, "reason", sdk.Text(run.reason))
		sdk.Put(details, "llm", run.usage.JSON())
		sdk.Put(details, "changed", sdk.Text(strings.Join(run.changed, " ")))
	case "dream_restore":
		sha, undone := m.restore(nanobot.Param(r.Params, "sha"))
		receipt.Status, receipt.NativeIDs = "applied", []string{sha}
		sdk.Put(details, "undone", sdk.Text(strings.Join(undone, " ")))
	default:
		return false
	}
	return true
}
