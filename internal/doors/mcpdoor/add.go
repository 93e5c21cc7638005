package mcpdoor

import (
	"context"
	"crypto/rand"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/text/transcript"
)

// An event_id of the door contains the event's time, so that a repeated call with the id is the same event even after a
// restart of this process. The slot would reject the id with other content.
const (
	eventPrefix = "mcp-"
	eventTime   = "20060102T150405.000Z"
)

var eventID = regexp.MustCompile(`^mcp-(\d{8}T\d{6}\.\d{3}Z)-[a-z0-9]{12}$`)

func (d *Door) add(ctx context.Context, a arguments) (*mcp.CallToolResult, error) {
	text, err := a.text("text")
	if err != nil {
		return nil, err
	}
	reply, err := a.text("reply")
	if err != nil {
		return nil, err
	}
	repeated, err := a.text("event_id")
	if err != nil {
		return nil, err
	}
	id, at, err := d.identify(repeated)
	if err != nil {
		return nil, err
	}
	event := &abi.MemoryEvent{EventID: id, RunID: d.options.Scope.RunID, UserID: d.options.Scope.PersonaID,
		AgentID: d.options.AgentID, SessionID: d.options.Session,
		TurnID: id, Timestamp: at.UTC().Format(time.RFC3339Nano),
		Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}}
	if reply, _ = transcript.Answer(reply); reply != "" {
		event.Messages = append(event.Messages, abi.Message{Role: abi.RoleAssistant, Content: &reply})
	}
	if err := event.Validate(); err != nil {
		return nil, err
	}
	var receipt *abi.WriteReceipt
	err = d.options.Slot(ctx, func(ctx context.Context, c host.Contract) (err error) {
		receipt, err = c.RecordEvent(ctx, event)
		return err
	})
	if err != nil {
		return nil, repeatable(err, id)
	}
	d.noteReceipt(ctx, receipt)
	return textResult(receiptText(receipt), receiptFields(receipt)), nil
}

// identify returns a call's event_id and time: new ones, or those of the call that it repeats.
func (d *Door) identify(repeated string) (id string, at time.Time, err error) {
	if repeated == "" {
		at = d.options.Now().UTC().Truncate(time.Millisecond)
		return eventPrefix + at.Format(eventTime) + "-" + strings.ToLower(rand.Text()[:12]), at, nil
	}
	if m := eventID.FindStringSubmatch(repeated); m != nil {
		if at, err = time.Parse(eventTime, m[1]); err == nil && at.Before(d.options.Now().Add(time.Minute)) {
			return repeated, at, nil
		}
	}
	return "", at, abi.NewError(abi.CodeInvalidArgument,
		"event_id: not one that an error of memory_add has named").WithHint("leave event_id out of a new call")
}

// repeatable adds the event's id to the error of a write whose outcome may be unknown.
func repeatable(err error, id string) error {
	e := *abi.AsError(err)
	if !e.Retryable {
		return &e
	}
	again := fmt.Sprintf(`repeat the call with "event_id": %q; then it is recorded once, whatever became of this one`,
		id)
	if e.Hint != "" {
		again = e.Hint + "; " + again
	}
	e.Hint = again
	return &e
}

// noteReceipt notes whether a receipt was skipped. Unless the slot as a whole is read-only, it is the scope or the
// session that is, which only receipts show.
func (d *Door) noteReceipt(ctx context.Context, r *abi.WriteReceipt) {
	skipped := r.Status == abi.StatusSkippedReadOnly
	if skipped {
		if err := d.ReadMode(ctx); err != nil {
			d.log.Debug("the mode is not known", "error", err)
		}
	}
	if !r.Duplicate {
		d.note(func(s *state) { s.readOnly = s.readOnly && skipped; s.skipped = skipped && !s.readOnly })
	}
}

// receiptText describes the outcome of the event for a model.
func receiptText(r *abi.WriteReceipt) string {
	outcome := map[abi.WriteStatus]string{
		abi.StatusCommitted: "Recorded. It can be found from now on.",
		abi.StatusQueued: "Accepted, not yet committed: the memory works on it, and it cannot be found " +
			"until then.",
		abi.StatusPending: "Accepted, not yet committed: the memory works on it, and it cannot be found " +
			"until then.",
		abi.StatusPartial:         "Recorded in part only.",
		abi.StatusUncertain:       "Sent; whether it arrived is not known yet.",
		abi.StatusNotRetained:     "Accepted by a memory that keeps nothing.",
		abi.StatusSkippedReadOnly: "NOT recorded: this memory is read-only at present.",
	}[r.Status]
	if outcome == "" {
		outcome = "Status: " + string(r.Status) + "."
	}
	if r.Duplicate {
		outcome = "This was recorded before, and once. " + outcome
	}
	if len(r.Warnings) > 0 {
		outcome += "\nWarnings: " + strings.Join(r.Warnings, "; ")
	}
	return outcome
}

func receiptFields(r *abi.WriteReceipt) map[string]any {
	return map[string]any{"status": r.Status, "event_id": r.EventID, "duplicate": r.Duplicate,
		"recorded": r.Status != abi.StatusSkippedReadOnly && r.Status != abi.StatusNotRetained,
		"warnings": nonNil(r.Warnings)}
}
