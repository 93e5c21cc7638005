package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/simulate"
	"github.com/memhost/memhost/host"
)

// checkFeedback rejects a column with memory.feedback whose provider has no apply_feedback.
//
// Errors: unsupported.
func (c *cell) checkFeedback() error {
	if !c.provider.Feedback() || c.Lab.Subject == nil || c.has[abi.OpApplyFeedback] {
		return nil
	}
	return abi.NewError(abi.CodeUnsupported, "memory.feedback: "+c.provider.Name()+" has no apply_feedback").
		WithHint("leave memory.feedback out of this entry")
}

// feedback passes the corrections of the session's conversations to apply_feedback, if the column asks for that. The wall
// is down. The nonces, which must not reach memory, are not part of them. Corrections that the journal has are not
// repeated; one that was interrupted is sent again with the same id.
func (t *testSession) feedback(ctx context.Context, probes []*pack.Probe) error {
	if !t.provider.Feedback() || t.options.Seat == nil {
		return nil
	}
	slot, ok := t.slot.(host.Contract)
	if !ok {
		return abi.NewError(abi.CodeUnsupported, "a cassette answers this cell, and takes no feedback")
	}
	preferences, err := t.pack.Preferences(t.id)
	if err != nil {
		return err
	}
	said := map[string]bool{} // a person says the same under each budget
	for _, c := range t.finished() {
		i := slices.IndexFunc(probes, func(p *pack.Probe) bool { return p.ProbeID == c.probe })
		if i < 0 || c.script == nil {
			continue
		}
		setting := simulate.NewSetting(probes[i], preferences)
		for turn, x := range c.script.Exchanges {
			if x.Action != journal.ActionCorrect || turn+1 == len(c.script.Exchanges) {
				continue
			}
			text := c.script.Exchanges[turn+1].User
			if said[c.probe+"\x00"+text] {
				continue
			}
			said[c.probe+"\x00"+text] = true
			id := fmt.Sprintf("feedback-%d-%s-%d-%d", t.number, c.probe, c.budget, turn+1)
			if t.done.feedback[id] {
				continue
			}
			wrong, err := t.wrongItems(c.script, setting, turn+1)
			if err != nil {
				return err
			}
			request := &abi.MemoryFeedback{FeedbackID: id, Scope: t.scope, SessionID: fmt.Sprintf("test-session-%d", t.number),
				Timestamp: t.at.Timestamp, Text: text, NativeIDs: wrong,
				History: []abi.Message{{Role: abi.RoleUser, Content: &x.User}, {Role: abi.RoleAssistant, Content: &x.Agent}}}
			if x.Agent == "" {
				request.History = request.History[:1]
			}
			if err := t.applyFeedback(ctx, slot, c, request); err != nil {
				return err
			}
		}
	}
	return nil
}

// applyFeedback passes one correction on, and journals the receipt.
func (t *testSession) applyFeedback(ctx context.Context, slot host.Contract, c *conversation, request *abi.MemoryFeedback) error {
	f := &journal.Feedback{FeedbackID: request.FeedbackID, ProbeID: c.probe, Budget: c.budget, Text: request.Text,
		NativeIDs: request.NativeIDs}
	for attempt := 0; ; attempt++ {
		receipt, err := slot.ApplyFeedback(ctx, request)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if f.Error = nil; err == nil {
			f.Status, f.Warnings = receipt.Status, receipt.Warnings
			break
		}
		f.Error = abi.AsError(err)
		if !f.Error.Retryable || attempt == retries {
			if err := t.lost(ctx, f.Error); err != nil {
				return err
			}
			break
		}
		if err := pauseAfter(ctx, f.Error); err != nil {
			return err
		}
	}
	line := t.line(journal.KindFeedback)
	line.Feedback = f
	t.done.feedback[f.FeedbackID] = true
	return t.journal.Write(line)
}

// wrongItems are the native ids of what the subject retrieved in a turn and before, and that names a value that is not in
// force: the memories that a correction is about.
func (t *testSession) wrongItems(script *journal.Transcript, setting *simulate.Setting, turn int) ([]string, error) {
	var ids []string
	for _, r := range script.Retrievals {
		if r.Turn > turn || r.ContextSHA256 == "" {
			continue
		}
		shown, err := rundir.Contexts(t.folder).Text(r.ContextSHA256)
		if err != nil {
			return nil, err
		}
		for i := range r.Evidence {
			e := &r.Evidence[i]
			text := e.Text
			if s := e.Shown; text == "" && s != nil && 0 <= s.Start && s.Start <= s.End && s.End <= int64(len(shown)) {
				text = string(shown[s.Start:s.End])
			}
			use := setting.UseOf(text)
			if e.NativeID != "" && (use == simulate.UseStale || use == simulate.UseElsewhere) && !slices.Contains(ids, e.NativeID) {
				ids = append(ids, e.NativeID)
			}
		}
	}
	return ids, nil
}
