package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/memhost/memhost/internal/text/convert"
	"github.com/memhost/memhost/internal/text/talks"
)

// recordTalks records what services exported and programs logged. Everything is read before anything is sent.
func (a *app) recordTalks(ctx context.Context, f *recordFlags, args []string) error {
	switch {
	case len(args) == 0:
		return usageError("record --from: want files, folders or zip archives", "")
	case f.session != "":
		return usageError("--session: not with --from, where each talk is a session of its own", "")
	case f.format != string(convert.FormatAuto):
		return usageError("--format: not with --from, which says the form", "")
	}
	o, err := f.options(a)
	if err != nil {
		return err
	}
	counts, bad, err := checkTalks(talks.Source(f.from), args, o, f.keepGoing)
	if err != nil {
		return err
	}
	if f.dryRun {
		return a.reportDryRun(counts, bad)
	}
	if !a.out.json {
		a.out.print("%s\n", talksText(counts))
	}
	reader, err := talks.Open(talks.Source(f.from), args, o)
	if err != nil {
		return err
	}
	soft, hard, stop := a.inTwoStages(ctx)
	defer stop()
	d, err := a.connect(soft)
	if err != nil {
		return err
	}
	defer d.close()
	r := &recorder{slot: d, batch: batchSize(hard, d), retries: f.retries, keepGoing: f.keepGoing, sleep: a.Sleep,
		out: a.out, progress: a.out.progress(counts.Events, "recording"), sum: newSummary()}
	r.sum.Talks = &counts
	began := a.Now()
	stopped := r.run(soft, hard, reader)
	r.progress.finish()
	r.sum.Seconds = a.Now().Sub(began).Seconds()
	r.sum.Slot = d.whose(hard)
	return a.reportRecord(&r.sum, stopped)
}

// checkTalks reads everything and counts it. bad says of talks that cannot be read why, and may be skipped.
//
// Errors: invalid_argument with the talks that cannot be read, unless they may be skipped.
func checkTalks(source talks.Source, args []string, o convert.Options, keepGoing bool) (_ talks.Counts, bad []string,
	err error) {
	r, err := talks.Open(source, args, o)
	if err != nil {
		return talks.Counts{}, nil, err
	}
	defer func() { _ = r.Close() }()
	hint := ""
	for {
		_, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			continue
		}
		var one *convert.LineError
		if !errors.As(err, &one) {
			return talks.Counts{}, nil, err
		}
		bad = append(bad, one.Err.Message)
		if hint == "" {
			hint = one.Err.Hint
		}
	}
	if len(bad) > 0 && !keepGoing {
		rest := "nothing was sent; leave out what cannot be read with --keep-going"
		if hint != "" {
			rest = hint + "\n        " + rest
		}
		return talks.Counts{}, nil, usageError(strings.Join(bad[:min(len(bad), maxBadLines)], "\n"), rest)
	}
	return r.Counts(), bad, nil
}

func (a *app) reportDryRun(counts talks.Counts, bad []string) error {
	if a.out.json {
		err := a.out.object(struct {
			DryRun bool         `json:"dry_run"`
			Talks  talks.Counts `json:"talks"`
			Bad    int          `json:"cannot_be_read"`
		}{true, counts, len(bad)})
		if err != nil {
			return err
		}
	} else {
		a.out.print("%s\n", talksText(counts))
		if len(bad) > 0 {
			a.out.print("left out, since it cannot be read: %d\n", len(bad))
		}
		a.out.print("nothing was sent\n")
	}
	for _, why := range bad[:min(len(bad), maxBadLines)] {
		a.out.note("  %s", printable(why))
	}
	if len(bad) > 0 {
		return &doneError{exitPartly}
	}
	return nil
}

// talksText says what was found, its period, and what is left out.
func talksText(c talks.Counts) string {
	text := fmt.Sprintf("%s in %s: %s, %s", count(c.Talks, "talk"), count(c.Files, "file"), count(c.Events, "event"),
		count(c.Messages, "message"))
	if c.Events > 0 {
		text += fmt.Sprintf(", %s to %s", c.First.UTC().Format(time.DateOnly), c.Last.UTC().Format(time.DateOnly))
	}
	if c.Attachments > 0 {
		text += fmt.Sprintf("; %s named", count(c.Attachments, "attachment"))
	}
	var left []string
	for _, part := range []struct {
		n    int
		what string
	}{{c.Credentials, "credential"}, {c.ToolCalls, "tool call"}, {c.ToolOutputs, "tool output"},
		{c.Thoughts, "thought"}, {c.Instructions, "instruction"}, {c.Replaced, "replaced message"},
		{c.SideTalks, "sub-agent message"}, {c.Repeated, "repeated message"}, {c.Unfinished, "unfinished turn"},
		{c.Empty, "empty talk"}} {
		if part.n > 0 {
			left = append(left, count(part.n, part.what))
		}
	}
	if len(left) > 0 {
		text += "\nleft out: " + strings.Join(left, ", ")
	}
	for _, name := range c.Derived {
		text += "\nleft out: " + printable(name) + " has facts that were drawn from talks, not talks"
	}
	return text
}
