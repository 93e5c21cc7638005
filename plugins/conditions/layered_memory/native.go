package main

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// nativeQuery answers
//
//	files {after}       -> {path: text}: the scope as the folder that Nanobot itself would have, in pages
//	status {}           -> sessions with their pointers and failures, and what the model was asked
//	dream_log {sha?}    -> the newest version of Dream, or the given one, with its diff
//	dream_restore {}    -> the last 10 versions of Dream, newest first, that the mutation of this name can undo
func nativeQuery(c *sdk.Call, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	var e jsontext.Encoder
	answer := &abi.NativeQueryResult{Name: r.Name, Trace: &abi.Trace{BackendName: s.config.Provider, NativeOperation: r.Name}}
	switch r.Name {
	case "files":
		f := nanobot.NewFiles(nanobot.Param(r.Params, "after"))
		if err := writeFiles(c, f); err != nil {
			return nil, err
		}
		f.Answer(answer)
		return answer, nil
	case "status":
		err = nanobot.WriteStatus(c, &e)
	case "dream_log":
		err = writeVersion(c, &e, nanobot.Param(r.Params, "sha"))
	case "dream_restore":
		err = writeVersions(c, &e)
	default:
		return nil, abi.NewError(abi.CodeInvalidArgument, "name: want files, status, dream_log or dream_restore")
	}
	if err != nil {
		return nil, err
	}
	answer.Result = e.Bytes()
	return answer, nil
}

// writeVersion writes one version; its message holds the diff against its parent. Of the first there is none.
func writeVersion(c *sdk.Call, e *jsontext.Encoder, sha string) error {
	var found *version
	var err error
	if sha != "" {
		found, err = findVersion(c, sha)
	} else {
		err = eachVersion(c, func(v *version) bool {
			if strings.HasPrefix(v.message, "dream:") {
				found = v
			}
			return found == nil
		})
	}
	switch {
	case err != nil:
		return err
	case found == nil:
		return abi.NewError(abi.CodeNotFound, "there is no version of Dream yet")
	}
	found.write(e)
	return nil
}

func (v *version) write(e *jsontext.Encoder) {
	subject, diff, _ := strings.Cut(v.message, "\n\n")
	e.ObjStart()
	for _, f := range []struct{ name, text string }{{"sha", v.sha}, {"parent", v.parent}, {"time", v.at}, {"subject", subject}, {"diff", diff}} {
		e.FieldStart(f.name)
		e.Str(f.text)
	}
	e.ObjEnd()
}

func writeVersions(c *sdk.Call, e *jsontext.Encoder) error {
	n := 0
	e.ArrStart()
	err := eachVersion(c, func(v *version) bool {
		if strings.HasPrefix(v.message, "dream:") {
			n++
			v.message, _, _ = strings.Cut(v.message, "\n\n")
			v.write(e)
		}
		return n < 10
	})
	e.ArrEnd()
	return err
}

// nativeMutation does
//
//	archive {session_id}  now: all messages of the session that are not archived yet
//	dream {}              one run, now
//	dream_restore {sha}   rewinds the files to before a version of Dream; later changes go, too
//	import_files {files, continues, done}   a workspace of Nanobot, or what files gave, into an empty scope
func nativeMutation(c *sdk.Call, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	receipt := &abi.MutationReceipt{Status: "no_change", Trace: &abi.Trace{BackendName: s.config.Provider, NativeOperation: r.Name}}
	switch r.Name {
	case "archive":
		session, err := nanobot.FindSession(c, nanobot.Param(r.Params, "session_id"))
		if err != nil || session.Open() == 0 {
			return receipt, err
		}
		var u nanobot.Usage
		if _, err := s.archive(c, session, session.Messages, &u); err != nil {
			return nil, err
		}
		receipt.Status, receipt.NativeIDs = "applied", []string{session.Key()[2:]}
		receipt.Trace.Details.Set("llm", u.JSON())
		if err := u.Add(c); err != nil {
			return nil, err
		}
		return receipt, session.Save(c)
	case "dream":
		d, err := readDream(c)
		if err != nil {
			return nil, err
		}
		run, err := s.runDream(c, d, "dream: manual run")
		if err != nil {
			return nil, err
		}
		if run.reason == "completed" || len(run.changed) > 0 {
			receipt.Status = "applied"
		}
		if run.version != "" {
			receipt.NativeIDs = []string{run.version}
		}
		receipt.Trace.Details.Set("reason", sdk.Text(run.reason))
		receipt.Trace.Details.Set("llm", run.usage.JSON())
		receipt.Trace.Details.Set("changed", sdk.Text(strings.Join(run.changed, " ")))
		return receipt, nil
	case "dream_restore":
		sha, undone, err := restore(c, nanobot.Param(r.Params, "sha"))
		if err != nil {
			return nil, err
		}
		receipt.Status, receipt.NativeIDs = "applied", []string{sha}
		receipt.Trace.Details.Set("undone", sdk.Text(strings.Join(undone, " ")))
		return receipt, nil
	case "import_files":
		return receipt, nanobot.ImportFiles(c, r, s.policy, receipt, func() (bool, error) { return empty(c) }, func(in *nanobot.Incoming) error { return takeFiles(c, in) })
	}
	return nil, abi.NewError(abi.CodeInvalidArgument, "name: want archive, dream, dream_restore or import_files")
}
