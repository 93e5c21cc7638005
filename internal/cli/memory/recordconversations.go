package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/text/conversations"
	"github.com/memhost/memhost/internal/text/convert"
)

// recordConversations records conversations that services exported or programs logged. It reads everything before it
// sends anything.
func (a *commands) recordConversations(ctx context.Context, f *recordFlags, args []string) error {
	switch {
	case len(args) == 0:
		return cli.UsageError("record --from: want files, folders or zip archives", "")
	case f.session != "":
		return cli.UsageError("--session: not with --from, where each conversation is a session of its own", "")
	case f.format != string(convert.FormatAuto):
		return cli.UsageError("--format: not with --from, which says the form", "")
	}
	var o conversations.Options
	var err error
	if o.Options, err = f.options(a); err != nil {
		return err
	}
	if o.Zone, err = zoneOf(f.zone); err != nil {
		return err
	}
	counts, bad, err := a.checkConversations(ctx, conversations.Source(f.from), args, o, f.keepGoing)
	if err != nil {
		return err
	}
	if f.dryRun {
		return a.reportDryRun(counts, bad)
	}
	if !a.Out.JSON {
		a.Out.Print("%s\n", conversationsText(counts))
	}
	soft, hard, stop := a.InTwoStages(ctx)
	defer stop()
	d, err := a.Connect(soft)
	if err != nil {
		return err
	}
	defer d.Close()
	if o.Known, err = knownIDs(soft, d, f.Scope()); err != nil {
		return err
	}
	reader, err := conversations.Open(conversations.Source(f.from), args, o)
	if err != nil {
		return err
	}
	r := &Recorder{Slot: d, Batch: BatchSize(hard, d), Retries: f.retries, keepGoing: f.keepGoing, Sleep: a.Sleep,
		Out: a.Out, Progress: a.Out.Progress(counts.Events, "recording"), Sum: NewSummary()}
	r.Sum.Conversations = &counts
	began := a.Now()
	stopped := r.Run(soft, hard, reader)
	r.Progress.Finish()
	r.Sum.addKnown(reader.Counts())
	r.Sum.Seconds = a.Now().Sub(began).Seconds()
	r.Sum.Slot = d.Owner(hard)
	return a.reportRecord(hard, d, &r.Sum, stopped)
}

// zoneOf parses --zone; nil if it is not given.
func zoneOf(name string) (*time.Location, error) {
	if name == "" {
		return nil, nil
	}
	for _, layout := range []string{"Z07:00", "Z0700", "Z07"} {
		if t, err := time.Parse(layout, name); err == nil {
			_, offset := t.Zone()
			return time.FixedZone(name, offset), nil
		}
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, cli.UsageError(fmt.Sprintf("--zone: %q is no zone", name), "want UTC, a name such as Europe/Paris, or +01:00")
	}
	return zone, nil
}

// knownIDs returns the ids of the events that the slot has for a scope. If the slot cannot list them there are none.
func knownIDs(ctx context.Context, d *cli.Door, scope abi.MemoryScope) (*conversations.KnownIDs, error) {
	ids, err := listedIDs(ctx, d, scope)
	if err != nil || ids == nil {
		return nil, err
	}
	return conversations.NewKnownIDs(ids), nil
}

// listedIDs lists the ids of the events that the slot has of a scope, nil if it cannot list them.
func listedIDs(ctx context.Context, d *cli.Door, scope abi.MemoryScope) ([]string, error) {
	lister, ok := d.Contract.(report.EventLister)
	if !ok {
		return nil, nil
	}
	return report.EventIDs(ctx, lister, scope)
}

// checkConversations reads and counts everything. bad explains which conversations cannot be read; they may be skipped.
//
// Errors: invalid_argument with the conversations that cannot be read, unless they may be skipped; ErrInterrupted, after a line
// about what was read.
func (a *commands) checkConversations(ctx context.Context, source conversations.Source, args []string, o conversations.Options, keepGoing bool) (
	_ conversations.Counts, bad []string, err error) {
	ctx, stop := a.UntilInterrupted(ctx)
	defer stop()
	r, err := conversations.Open(source, args, o)
	if err != nil {
		return conversations.Counts{}, nil, err
	}
	defer func() { _ = r.Close() }()
	hint := ""
	for {
		if ctx.Err() != nil {
			a.Out.Note("read until then: %s; nothing was sent", cli.FirstLine(conversationsText(r.Counts())))
			return conversations.Counts{}, nil, cli.ErrInterrupted
		}
		_, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			continue
		}
		var one *convert.LineError
		if !errors.As(err, &one) {
			return conversations.Counts{}, nil, err
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
		return conversations.Counts{}, nil, cli.UsageError(strings.Join(bad[:min(len(bad), maxBadLines)], "\n"), rest)
	}
	return r.Counts(), bad, nil
}

func (a *commands) reportDryRun(counts conversations.Counts, bad []string) error {
	if a.Out.JSON {
		err := a.Out.Object(struct {
			DryRun        bool                 `json:"dry_run"`
			Conversations conversations.Counts `json:"conversations"`
			Bad           int                  `json:"cannot_be_read"`
		}{true, counts, len(bad)})
		if err != nil {
			return err
		}
	} else {
		a.Out.Print("%s\n", conversationsText(counts))
		if len(bad) > 0 {
			a.Out.Print("left out, since it cannot be read: %d\n", len(bad))
		}
		a.Out.Print("nothing was sent\n")
	}
	for _, why := range bad[:min(len(bad), maxBadLines)] {
		a.Out.Note("  %s", why)
	}
	if len(bad) > 0 {
		return cli.Done(cli.ExitPartly)
	}
	return nil
}

// conversationsText describes what was found, its period, and what is left out.
func conversationsText(c conversations.Counts) string {
	text := fmt.Sprintf("%s in %s: %s, %s", cli.Count(c.Conversations, "conversation"), cli.Count(c.Files, "file"), cli.Count(c.Events, "event"),
		cli.Count(c.Messages, "message"))
	if c.Events > 0 {
		text += fmt.Sprintf(", %s to %s", c.First.UTC().Format(time.DateOnly), c.Last.UTC().Format(time.DateOnly))
	}
	if c.Attachments > 0 {
		text += fmt.Sprintf("; %s named", cli.Count(c.Attachments, "attachment"))
	}
	left := c.LeftOut()
	if len(left) > 0 {
		text += "\nleft out: " + strings.Join(left, ", ")
	}
	if c.BadTimes > 0 {
		text += fmt.Sprintf("\n%s could not be read: those of the messages before count", cli.Count(c.BadTimes, "time"))
	}
	return text
}
