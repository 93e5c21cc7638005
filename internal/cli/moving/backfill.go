package moving

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/pause"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// backfiller handles POST /v1/backfill on a slot; see swapper.
type backfiller struct {
	app     *commands
	slot    *host.Slot
	running *config.Config
	options config.Options
}

// NewBackfiller makes the backfiller of a slot.
func NewBackfiller(k *cli.App, slot *host.Slot, running *config.Config, options config.Options) *backfiller {
	a := &commands{k}
	return &backfiller{app: a, slot: slot, running: running, options: options}
}

// config makes the provider's configuration from a request.
func (b *backfiller) config(r wire.BackfillRequest) (host.ProviderConfig, error) {
	c, err := b.app.SwapConfig(b.running, b.options, r.Swap())
	if err != nil {
		e := *abi.AsError(err)
		e.Operation = wire.OpBackfill
		return c, &e
	}
	return c, nil
}

// Backfill implements server.Backfiller.
func (b *backfiller) Backfill(ctx context.Context, r wire.BackfillRequest) (*report.Backfill, error) {
	c, err := b.config(r)
	if err != nil {
		return nil, err
	}
	return b.slot.Backfill(ctx, c, host.BackfillOptions{Rate: r.EventsPerSecond, Inline: len(r.Config) > 0,
		Given: r.Given})
}

// BackfillPlan implements server.Backfiller.
func (b *backfiller) BackfillPlan(ctx context.Context, r wire.BackfillRequest) (*report.BackfillPlan, error) {
	c, err := b.config(r)
	if err != nil {
		return nil, err
	}
	return b.slot.BackfillPlan(ctx, c, host.BackfillOptions{Given: r.Given})
}

// Resume continues a backfill that the end of an earlier process interrupted. If it cannot, the slot still serves, and
// a line says why.
func (b *backfiller) Resume(ctx context.Context, s *cli.Steps) {
	u, err := b.slot.UnfinishedBackfill(ctx)
	if err == nil && (u == nil || u.Stopped) {
		return
	}
	if err == nil {
		var c host.ProviderConfig
		if c, err = b.config(requestOf(u)); err == nil {
			_, err = b.slot.Backfill(ctx, c, host.BackfillOptions{Rate: u.Rate, Inline: len(u.Block) > 0, Given: u.Given,
				Resume: true})
		}
	}
	if err != nil {
		e := abi.AsError(err)
		s.Notef("the backfill that was under way does not go on: %s; %s", e.Message, e.Hint)
		return
	}
	s.Notef("the backfill of %s goes on: `memhost backfill` says how far it is", u.Provider)
}

// requestOf reconstructs the request that started a backfill.
func requestOf(u *host.UnfinishedBackfill) wire.BackfillRequest {
	r := wire.BackfillRequest{Config: u.Block, EventsPerSecond: u.Rate, Given: u.Given}
	if r.Backend = u.Provider; u.Word == config.WordCondition {
		r.Backend, r.Condition = "", u.Provider
	}
	if u.Source != cli.SourceBuiltin {
		r.Plugin = u.Source
	}
	return r
}

// BackfillDiscard implements server.Backfiller.
func (b *backfiller) BackfillDiscard(ctx context.Context) (*report.Backfill, error) {
	u, err := b.slot.UnfinishedBackfill(ctx)
	if err != nil {
		return nil, err
	}
	if u == nil {
		return &report.Backfill{State: report.FollowerNone}, nil
	}
	c, err := b.config(requestOf(u))
	if err != nil {
		return nil, err
	}
	return b.slot.BackfillDiscard(ctx, c)
}

const backfillHelp = `Says how far the backfill is that memhost swap PROVIDER --backfill began: another memory is filled
from the archive, or from files, while the present one serves, then gets what is recorded, and serves as soon as
it has everything. It goes on after a restart of the slot.`

func (a *commands) backfillCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "backfill", Short: "Watch, stop or throw away the filling of another memory",
		Long: backfillHelp, Args: cli.NoSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withRunning(cmd.Context(), "backfill", func(ctx context.Context, c *client.Client) error {
				b, err := c.BackfillStatus(ctx)
				return a.tellBackfill(b, err)
			})
		}}
	verb := func(use, short string, do func(ctx context.Context, c *client.Client) (*report.Backfill, error)) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withRunning(cmd.Context(), "backfill", func(ctx context.Context, c *client.Client) error {
				b, err := do(ctx, c)
				return a.tellBackfill(b, err)
			})
		}}
	}
	accept := false
	serve := verb("serve", "Try refused events again, and let the memory serve", func(ctx context.Context,
		c *client.Client) (*report.Backfill, error) {
		return c.BackfillServe(ctx, &report.BackfillServe{AcceptOpen: accept})
	})
	serve.Flags().BoolVar(&accept, "accept-open", false,
		"let it serve although events are open, dropped, or held back by read-only scopes")
	cmd.AddCommand(serve,
		verb("watch", "Wait until the memory serves", func(ctx context.Context, c *client.Client) (*report.Backfill, error) {
			b, err := c.BackfillStatus(ctx)
			if err != nil || b.State == report.FollowerNone {
				return b, err
			}
			if b, err = a.watchBackfill(ctx, c, b); err == nil && b.State != report.FollowerServes {
				err = a.tellUnserved(b)
			}
			return b, err
		}),
		verb("stop", "Stop it; what it filled is kept, and memhost swap --backfill continues it", func(ctx context.Context,
			c *client.Client) (*report.Backfill, error) {
			return c.BackfillStop(ctx, &report.BackfillStop{})
		}),
		verb("discard", "Stop it and erase what it filled", func(ctx context.Context, c *client.Client) (*report.Backfill,
			error) {
			b, err := c.BackfillStop(ctx, &report.BackfillStop{Discard: true})
			if err == nil {
				b.State = report.FollowerNone
			}
			return b, err
		}))
	return cmd
}

// withRunning runs a function on a running slot.
func (a *commands) withRunning(ctx context.Context, name string, verb func(context.Context, *client.Client) error) error {
	return a.WithDoor(ctx, func(ctx context.Context, d *cli.Door) error {
		c, ok := d.Contract.(*client.Client)
		if !ok {
			return abi.NewError(abi.CodeUnavailable, name+": no slot is running").WithHint("memhost run")
		}
		return verb(ctx, c)
	})
}

// tellUnserved prints the progress of a backfill that has ended for now before its provider serves.
func (a *commands) tellUnserved(b *report.Backfill) error {
	if err := a.tellBackfill(b, nil); err != nil {
		return err
	}
	return cli.Done(cli.ExitPartly)
}

// tellBackfill prints the progress of a backfill.
func (a *commands) tellBackfill(b *report.Backfill, err error) error {
	if err != nil {
		return err
	}
	if a.Out.JSON {
		return a.Out.Value(b)
	}
	a.Out.Print("%s\n", backfillText(b))
	return nil
}

func backfillText(b *report.Backfill) string {
	if b.State == report.FollowerNone {
		text := "no backfill is under way"
		for _, what := range b.Remains {
			text += "\nwhat remains: " + what
		}
		return text
	}
	text := b.Provider + ": " + progressText(b.State, &b.Progress)
	if b.State == report.FollowerAsks {
		text += "\n`memhost backfill serve` tries refused ones again; with --accept-open it serves without them"
	}
	if b.State == report.FollowerReadOnly && b.Progress.Held > 0 {
		text += "\nit serves once these scopes may be written, or without their events after `memhost backfill serve " +
			"--accept-open`"
	}
	return text
}

// progressText describes the progress of a follower on one line, and its open events on further lines.
func progressText(state report.FollowerState, p *report.FollowerProgress) string {
	words := map[report.FollowerState]string{report.FollowerReadOnly: "waits behind the read-only wall",
		report.FollowerNotReady: "works on what it has got", report.FollowerAsks: "asks about open events",
		report.FollowerReady: "has everything", report.FollowerStopped: "stopped", report.FollowerServes: "serves"}
	word, ok := words[state]
	if !ok {
		word = string(state)
	}
	text := fmt.Sprintf("%s, %s of %s events", word, cli.Grouped(p.Done), cli.Grouped(p.Events))
	if p.LeftOut > 0 {
		text += fmt.Sprintf(", %s left out (forgotten, reset or of test sessions)", cli.Grouped(p.LeftOut))
	}
	if p.Held > 0 {
		text += fmt.Sprintf(", %s held back by read-only scopes", cli.Grouped(p.Held))
	}
	if p.Dropped > 0 {
		text += fmt.Sprintf(", %s dropped (more waited than limits.queue_bytes, or the archive's retention ended)",
			cli.Grouped(p.Dropped))
	}
	if p.Unseen > 0 {
		text += fmt.Sprintf(", %s not ready", cli.Grouped(p.Unseen))
	}
	if p.PerSecond > 0 && p.RemainingMS != nil {
		text += fmt.Sprintf(", %.1f a second, %s left", p.PerSecond,
			(time.Duration(*p.RemainingMS) * time.Millisecond).Round(time.Second))
	}
	if p.Error != nil {
		text += "\n" + p.Error.Message
		if p.RetryAfterMS != nil {
			text += fmt.Sprintf("; tried again in %s", (time.Duration(*p.RetryAfterMS) * time.Millisecond).Round(time.Second))
		}
	}
	if p.Open > 0 {
		text += fmt.Sprintf("\n%s open:", cli.Grouped(p.Open))
	}
	for i := range p.OpenEvents {
		e := &p.OpenEvents[i]
		if i == 10 {
			text += "\n  ..."
			break
		}
		text += fmt.Sprintf("\n  %s (run %q, user %q): %s, ", e.EventID, e.Scope.RunID, e.Scope.PersonaID,
			e.Outcome) + e.Why
	}
	return text
}

// backfillFlags are the flags of swap about a backfill.
type backfillFlags struct {
	backfill, dryRun bool
	rate             float64
	// files are exports to fill from instead of the archive; identity is the file with the age key for them.
	files    []string
	identity string
}

func (f *backfillFlags) check() error {
	switch {
	case len(f.files) > 0 && !f.backfill:
		return cli.UsageError("swap: "+cli.Quote(f.files[0])+": files are for --backfill", "")
	case f.identity != "" && len(f.files) == 0:
		return cli.UsageError("swap: --identity is for the files of --backfill", "")
	case f.rate < 0:
		return cli.UsageError("--rate: want 0 or more events a second", "")
	case !f.backfill && (f.dryRun || f.rate > 0):
		return cli.UsageError("swap: --dry-run and --rate are for --backfill", "")
	}
	return nil
}

// backfill starts a backfill and shows its progress until the memory serves.
func (a *commands) backfill(ctx context.Context, d *cli.Door, swap *wire.SwapRequest, f *backfillFlags) error {
	running, ok := d.Contract.(*client.Client)
	if !ok {
		return abi.NewError(abi.CodeUnavailable, "swap: no slot is running").WithHint("memhost run")
	}
	r := wire.BackfillRequest{Backend: swap.Backend, Condition: swap.Condition, Plugin: swap.Plugin, Config: swap.Config,
		EventsPerSecond: f.rate, Given: len(f.files) > 0}
	if r.Given {
		if err := a.give(ctx, running, f); err != nil {
			return err
		}
	}
	if f.dryRun {
		plan, err := running.BackfillPlan(ctx, r)
		if r.Given {
			_, dropped := running.BackfillEvents(ctx, &report.BackfillEvents{First: true, Events: []abi.MemoryEvent{}})
			err = errors.Join(err, dropped)
		}
		if err != nil {
			return err
		}
		if a.Out.JSON {
			return a.Out.Value(plan)
		}
		a.Out.Print("%s\n", planText(plan))
		return nil
	}
	before, err := running.Manifest(ctx)
	if err != nil {
		return err
	}
	b, err := running.Backfill(ctx, r)
	if err != nil {
		e := *abi.AsError(err)
		e.Hint = strings.TrimPrefix(e.Hint+"; the slot still serves "+before.Provider, "; ")
		return &e
	}
	if !a.Out.JSON {
		a.Out.Note("filling %s while %s serves; Ctrl-C ends this command and not the backfill", b.Provider, before.Provider)
	}
	b, err = a.watchBackfill(ctx, running, b)
	if err != nil {
		return err
	}
	if b.State != report.FollowerServes {
		return a.tellUnserved(b)
	}
	m, err := running.Manifest(ctx)
	if err != nil {
		return err
	}
	if a.Out.JSON {
		return a.Out.Value(m)
	}
	for _, step := range m.Steps {
		if step.Name == wire.OpBackfill {
			a.Out.Print("%s %s: %s\n", a.Out.Passed(), step.Name, step.Detail)
		}
	}
	a.Out.Print("%s serves, load generation %d, at %s\n", m.Provider, m.LoadGeneration, d.Where())
	a.tellRestart(m)
	return nil
}

// tellRestart warns that a restart of the slot undoes a swap if the configuration may choose another provider. A
// configuration that chooses none continues with the last provider.
func (a *commands) tellRestart(m *report.RunManifest) {
	decides := "after a restart the configuration decides"
	if a.ServerNamed() != "" { // its configuration is unknown here
		decides = "if the slot's configuration chooses a provider, a restart goes back to that"
	} else if c, err := a.Config(); err == nil {
		name, word, _ := c.Block()
		if c.Source("memory."+word).Kind == config.KindDefault || name == m.Provider {
			return
		}
	}
	word := config.WordBackend
	if m.Condition != "" {
		word = config.WordCondition
	}
	a.Out.Note("  %s: set memory.%s: %s there", decides, word, m.Provider)
}

// give sends the events of files to the slot, to fill another memory. It reads all files completely before it sends
// any.
func (a *commands) give(ctx context.Context, running *client.Client, f *backfillFlags) error {
	identities, err := ageIdentities(f.identity)
	if err != nil {
		return err
	}
	var paths []string
	events := 0
	for _, name := range f.files {
		path, done, err := a.spooled(name)
		if err != nil {
			return err
		}
		defer done()
		if err := readExport(path, identities, func(*abi.MemoryEvent) error { events++; return nil }); err != nil {
			return err
		}
		paths = append(paths, path)
	}
	first, sum := true, new(report.ArchiveReceipt)
	add := func(ctx context.Context, batch *abi.EventBatch) (*report.ArchiveReceipt, error) {
		request := &report.BackfillEvents{First: first, Events: batch.Events}
		first = false
		return running.BackfillEvents(ctx, request)
	}
	for _, path := range paths {
		if err := addEvents(ctx, add, path, identities, sum); err != nil {
			return err
		}
	}
	text := cli.Count(int(sum.Added), "event") + " read"
	if sum.Present > 0 {
		text += fmt.Sprintf(", %s twice", cli.Grouped(sum.Present))
	}
	if forgotten := int64(events) - sum.Added - sum.Present; forgotten > 0 {
		text += fmt.Sprintf(", %s forgotten and left out", cli.Grouped(forgotten))
	}
	if !a.Out.JSON {
		a.Out.Note("%s", text)
	}
	return nil
}

// watchBackfill waits until the backfill is over, needs a decision or was stopped.
func (a *commands) watchBackfill(ctx context.Context, c *client.Client, b *report.Backfill) (*report.Backfill, error) {
	bar := a.Out.Progress(int(max(b.Progress.Events, 1)), b.Provider)
	defer bar.Finish()
	provider, last, shown := b.Provider, "", int64(0)
	for {
		if bar == nil && !a.Out.JSON && b.State != report.FollowerNone && string(b.State) != last {
			a.Out.Note("  %s", watchedText(b))
			last = string(b.State)
		}
		bar.Add(int(b.Progress.Done - shown))
		shown = b.Progress.Done
		switch b.State {
		case report.FollowerAsks, report.FollowerStopped:
			return b, nil
		case report.FollowerNone: // it serves now, or the backfill was discarded
			m, err := c.Manifest(ctx)
			if err == nil && m.Provider == provider {
				b.State, b.Provider = report.FollowerServes, provider
			}
			return b, err
		}
		if err := pause.For(ctx, 300*time.Millisecond); err != nil {
			return nil, err
		}
		next, err := c.BackfillStatus(ctx)
		if err != nil {
			return nil, err
		}
		b = next
	}
}

// watchedText describes the progress of a backfill, and why it waits.
func watchedText(b *report.Backfill) string {
	text := progressText(b.State, &b.Progress)
	if b.Progress.Error == nil {
		return cli.FirstLine(text)
	}
	return text
}

// planText describes what a backfill would send.
func planText(p *report.BackfillPlan) string {
	text := fmt.Sprintf("a backfill of %s would deliver %s events of %s, about %s tokens (%s)", p.Provider,
		cli.Grouped(p.Events), cli.Count(int(p.Scopes), "scope"), cli.Grouped(p.Tokens), p.Tokenizer)
	if p.Oldest != "" {
		text += fmt.Sprintf(",\nfrom %s to %s", p.Oldest, p.Newest)
	}
	if p.LeftOut > 0 {
		text += fmt.Sprintf("\n%s are left out: forgotten, reset or of test sessions", cli.Grouped(p.LeftOut))
	}
	text += fmt.Sprintf("\nnative calls: %s at least", cli.Grouped(p.NativeCalls))
	for _, note := range p.Notes {
		text += "\n" + note
	}
	return text + "\nnothing was sent"
}
