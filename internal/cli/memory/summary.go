package memory

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/text/conversations"
	"github.com/memhost/memhost/internal/text/convert"
)

// recordSummary is the result of a recording. Every event of the input is in exactly one of the counts, except those
// after the point where a recording stopped.
type recordSummary struct {
	Recorded   int `json:"recorded"`
	Duplicates int `json:"duplicates"`
	// NotRetained counts events accepted by a provider that keeps nothing, SkippedReadOnly those kept out by read-only
	// mode.
	NotRetained     int `json:"not_retained"`
	SkippedReadOnly int `json:"skipped_read_only"`
	// Uncertain counts events that may have arrived, or in part only. Recording them again settles that.
	Uncertain int `json:"uncertain"`
	// Known counts turns that the slot already has with another text: recorded by another version, or by an agent's
	// hook.
	Known int `json:"known_read_differently,omitempty"`
	// Forgotten counts events that were left out because they had been forgotten on request.
	Forgotten int `json:"forgotten,omitempty"`
	Failed    int `json:"failed"`
	// BadLines counts the lines that were left out.
	BadLines int `json:"bad_lines"`
	// Queued counts those of Recorded that the backend accepted and has not processed yet.
	Queued int `json:"queued"`
	// Attachments counts the parts of messages that were left out.
	Attachments int `json:"attachments_left_out"`
	// LastLine is the last line with a known outcome. StoppedAt is the line that still failed after all retries.
	LastLine  int `json:"last_line"`
	StoppedAt int `json:"stopped_at_line,omitempty"`
	// Failures has details of at most maxListed failures.
	Failures    []recordFailure `json:"failures"`
	Warnings    map[string]int  `json:"warnings"`
	Interrupted bool            `json:"interrupted"`
	Seconds     float64         `json:"seconds"`
	// Slot is where the events went: "mem0 at 127.0.0.1:7077", "mem0, opened here".
	Slot string `json:"slot,omitempty"`
	// Scopes are those of the events that were sent, in order; at most maxScopes.
	Scopes []abi.MemoryScope `json:"scopes,omitempty"`
	Error  *abi.Error        `json:"error,omitempty"`
	// Conversations counts what was found in exports and logs, nil for other inputs.
	Conversations *conversations.Counts `json:"conversations,omitempty"`
}

// unit names what LastLine, StoppedAt and the lines of failures count.
func (s *recordSummary) unit() string {
	if s.Conversations != nil {
		return "conversation"
	}
	return "line"
}

// at adds the line to an error.
func (s *recordSummary) at(e *abi.Error, line int) error {
	at := *e
	at.Message = fmt.Sprintf("%s %d: %s", s.unit(), line, e.Message)
	return &at
}

// recordFailure is an event, or a whole line, that was not recorded.
type recordFailure struct {
	// File is "" if there is one input.
	File    string     `json:"file,omitempty"`
	Line    int        `json:"line"`
	EventID string     `json:"event_id,omitempty"`
	Error   *abi.Error `json:"error"`
}

// maxScopes bounds the scopes that a summary names.
const maxScopes = 100

// NewSummary makes an empty summary.
func NewSummary() recordSummary {
	return recordSummary{Failures: []recordFailure{}, Warnings: map[string]int{}}
}

// add counts a receipt.
func (s *recordSummary) add(r *abi.WriteReceipt, item convert.Item) {
	s.LastLine = item.Line
	s.Attachments += item.Attachments
	scope := abi.MemoryScope{RunID: item.Event.RunID, PersonaID: item.Event.UserID, AgentID: item.Event.AgentID}
	if len(s.Scopes) < maxScopes && !slices.Contains(s.Scopes, scope) {
		s.Scopes = append(s.Scopes, scope)
	}
	switch {
	case r.Status == abi.StatusUncertain || r.Status == abi.StatusPartial:
		s.Uncertain++
	case r.Duplicate:
		s.Duplicates++
	case r.Status == abi.StatusNotRetained:
		s.NotRetained++
	case r.Status == abi.StatusSkippedReadOnly:
		s.SkippedReadOnly++
	default:
		s.Recorded++
		if r.Status != abi.StatusCommitted {
			s.Queued++
		}
	}
	for _, w := range r.Warnings {
		code, _, _ := strings.Cut(w, ":")
		if code == "duplicate_event" || code == "read_only" {
			continue // counted above
		}
		s.Warnings[w]++
	}
}

// addKnown counts the turns that the reader left out because the slot has them under earlier ids.
func (s *recordSummary) addKnown(c conversations.Counts) {
	s.Known += c.ReadDifferently
	s.Duplicates += c.Known - c.ReadDifferently
	if s.Conversations != nil {
		s.Conversations.Known, s.Conversations.ReadDifferently = c.Known, c.ReadDifferently
	}
}

func (s *recordSummary) fail(f recordFailure) {
	if len(s.Failures) < maxListed {
		s.Failures = append(s.Failures, f)
	}
}

// ExitCode returns the exit code for the error that stopped the recording, or for the failures.
func (s *recordSummary) ExitCode(stopped error) int {
	there := s.Recorded + s.Duplicates + s.NotRetained + s.Known
	switch {
	case errors.Is(stopped, cli.ErrInterrupted):
		return cli.ExitInterrupted
	case stopped != nil:
		return cli.ExitCode(stopped)
	case s.Failed+s.BadLines > 0 && there > 0:
		return cli.ExitPartly
	case s.Failed+s.BadLines > 0 && len(s.Failures) > 0:
		return cli.ExitCode(s.Failures[0].Error)
	case s.SkippedReadOnly > 0 && there > 0:
		return cli.ExitPartly
	case s.SkippedReadOnly > 0:
		return cli.ExitRefused
	case s.Uncertain > 0:
		return cli.ExitRetry
	}
	return cli.ExitOK
}

// isEmpty reports whether no event was read at all, not even one that was left out.
func (s *recordSummary) isEmpty() bool {
	return s.Recorded+s.Duplicates+s.Known+s.NotRetained+s.SkippedReadOnly+s.Uncertain+s.Forgotten+s.Failed+s.BadLines == 0
}

// Text is the summary on one line.
func (s *recordSummary) Text() string {
	parts := []string{"recorded " + cli.Count(s.Recorded, "event")}
	for _, p := range []struct {
		n    int
		what string
	}{{s.Queued, "%d of them queued in the backend"}, {s.Duplicates, "%d already there"},
		{s.Known, "%d known, read differently before"},
		{s.NotRetained, "%d not retained"}, {s.SkippedReadOnly, "%d skipped: read-only"},
		{s.Uncertain, "%d uncertain: record them again"}, {s.Forgotten, "%d forgotten and left out"}, {s.Failed, "%d failed"},
		{s.BadLines, "bad lines left out: %d"}, {s.Attachments, "attachments left out: %d"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf(p.what, p.n))
		}
	}
	text := strings.Join(parts, ", ") + fmt.Sprintf(" (%.1f s)", s.Seconds)
	switch n := len(s.Scopes); {
	case n == 1:
		text += " for " + cli.ScopeText(s.Scopes[0])
	case n == maxScopes:
		text += fmt.Sprintf(" for %d scopes or more, the first %s", n, cli.ScopeText(s.Scopes[0]))
	case n > 1:
		text += fmt.Sprintf(" for %d scopes, the first %s", n, cli.ScopeText(s.Scopes[0]))
	}
	if s.Slot != "" {
		text += ": " + s.Slot
	}
	return text
}

// Details prints failures and warnings.
func (s *recordSummary) Details(o *cli.Output) {
	const most = 20
	for i, f := range s.Failures {
		if i == most {
			o.Note("  ... and %d more; --json lists them", s.Failed+s.BadLines-most)
			break
		}
		at := ""
		if f.File != "" {
			at = f.File + ": "
		}
		o.Note("  %s%s %d: %s: %s", at, s.unit(), f.Line, f.Error.Code, cli.FirstLine(f.Error.Message))
	}
	for i, w := range slices.Sorted(maps.Keys(s.Warnings)) {
		if i == most {
			o.Note("  ... and %d more kinds of warnings", len(s.Warnings)-most)
			break
		}
		o.Note("  warning (%s): %s", cli.Count(s.Warnings[w], "time"), w)
	}
}
