package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/subject"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/pause"
)

// manifestFile is the cell's sealed manifest.
const manifestFile = "manifest.json"

// cell is one running cell.
type cell struct {
	*runner
	*participant
	provider *lab.Provider
	budgets  []int64
	dir      string
	journal  *journal.Writer
	before   *cellProgress // what the journal recorded before the cell was opened
	slot     slot
	smokes   []report.SmokeVerdict // of a rehearsal, if the slot itself ran none
	has      map[string]bool       // the provider's capabilities
	calls    readyCalls

	done  atomic.Int64
	total int
}

// walk runs a cell from its present position to its end, each part when it is the cell's turn. It returns the journal's
// head.
func (r *runner) walk(ctx context.Context, info *participant, start func()) (head string, err error) {
	provider := r.Lab.Find(info.Label)
	if provider == nil {
		return "", abi.NewError(abi.CodeInvalidArgument, "the lab has no provider of this label")
	}
	counts, budgets := r.pack.Manifest.Counts, r.Lab.BudgetsOf(provider)
	c := &cell{runner: r, participant: info, provider: provider, budgets: budgets, dir: info.Folder(r.folder),
		before: newDone(),
		has:    map[string]bool{}, total: counts.Events + counts.Probes*len(budgets)}
	var opened closers
	err = c.turn(ctx, func() (err error) {
		if err := r.update(start); err != nil {
			return err
		}
		opened, err = c.begin(ctx)
		return err
	})
	defer func() { err = errors.Join(err, opened.Close(context.WithoutCancel(ctx))) }()
	if err != nil {
		return "", err
	}
	if c.before.ended {
		return c.journal.Head(), nil
	}
	for _, group := range r.groups() {
		if err := c.turn(ctx, func() error { return c.personas(ctx, group) }); err != nil {
			return "", err
		}
	}
	if err := c.turn(ctx, func() error { return c.finish(ctx) }); err != nil {
		return "", err
	}
	return c.journal.Head(), nil
}

// begin opens the cell's journal and, unless the cell has ended, its host, and seals its manifest.
func (c *cell) begin(ctx context.Context) (opened closers, err error) {
	if err := errors.Join(os.MkdirAll(c.dir, 0o755), os.RemoveAll(filepath.Join(c.dir, workspaces))); err != nil {
		return nil, unusable(err)
	}
	c.journal, err = journal.Append(filepath.Join(c.dir, journal.Name), func() string {
		return stamp(c.options.Now())
	}, c.before.add)
	if err != nil {
		return nil, err
	}
	opened = closers{func(context.Context) error { return c.journal.Close() }}
	if c.before.ended {
		return opened, nil
	}
	c.done.Store(int64(c.before.lines))
	slot, err := c.open(ctx)
	if err != nil {
		return opened, err
	}
	return append(opened, slot...), c.seal(ctx)
}

// finish measures freshness and writes the journal's last line.
func (c *cell) finish(ctx context.Context) error {
	if err := c.freshness(ctx); err != nil {
		return err
	}
	counts := c.pack.Manifest.Counts
	end := &journal.End{Events: counts.Events, Sessions: counts.Sessions, Probes: counts.Probes * len(c.budgets)}
	if err := c.journal.Write(&journal.Line{Kind: journal.KindEnd, End: end}); err != nil {
		return err
	}
	return c.journal.Sync()
}

// open opens the cell's host and loads the provider. Smoke tests only run when the cell is first started.
func (c *cell) open(ctx context.Context) (closers, error) {
	if c.options.tapes != "" {
		return c.openTape()
	}
	config, err := c.options.Provider(c.provider)
	if err != nil {
		return nil, err
	}
	if retry := config.RetryEmpty; retry != "" && retry != host.RetryNever {
		return nil, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("memory.retry_empty: is %s, and an evaluation records "+
			"every event once: a second try is paid twice and may keep a part of it twice", retry)).
			WithHint("leave memory.retry_empty out of the lab")
	}
	config.Tokenizer = c.Lab.Tokenizer
	config.Smoke = host.SmokeAlways
	o := c.options.Host
	o.DataDir, o.Durability, o.Logger = filepath.Join(c.dir, "data"), "process", c.options.Logger.With("cell", c.Label)
	o.Run = host.RunLabels{Seed: strconv.FormatUint(c.Lab.Seed, 10), Replicate: strconv.Itoa(c.Replicate),
		Labels: map[string]string{"evaluation": c.Lab.Name, "label": c.Label}}
	if c.before.begin != nil || c.Lab.Cassettes {
		config.Smoke = host.SmokeNever
	}
	if c.Lab.Cassettes {
		if c.before.begin != nil {
			return nil, abi.NewError(abi.CodeUnsupported,
				"a cell that is recorded on a cassette cannot be resumed: the cassette would have a gap").
				WithHint("remove the cell's folder, and it begins anew")
		}
		if c.smokes, err = c.rehearse(ctx, config); err != nil {
			return nil, err
		}
		o.Cassette = &host.CassetteOptions{Path: filepath.Join(c.dir, cassetteFile), Seed: []byte(c.RunID)}
	}
	o.Observe = c.calls.observe
	c.note("loading")
	h, err := host.New(ctx, o)
	if err != nil {
		return nil, err
	}
	s, err := h.Open(ctx, config)
	if err != nil {
		return nil, errors.Join(err, h.Close(context.WithoutCancel(ctx)))
	}
	c.slot = s
	return closers{h.Close, s.Close}, nil
}

// seal writes the cell's manifest and the journal's first line. A resumed cell must be served by the provider with
// which it started.
func (c *cell) seal(ctx context.Context) error {
	capabilities, err := c.slot.Capabilities(ctx)
	if err != nil {
		return err
	}
	for _, name := range capabilities.Capabilities {
		c.has[name] = true
	}
	if err := c.checkFeedback(); err != nil {
		return err
	}
	m, err := c.slot.Manifest(ctx)
	if err != nil {
		return err
	}
	if err := refuseFed(m); err != nil {
		return err
	}
	if c.smokes != nil {
		m.Smokes = c.smokes
	}
	path := filepath.Join(c.dir, manifestFile)
	if begun := c.before.begin; begun != nil {
		sealed, err := os.ReadFile(path)
		if err != nil {
			return unusable(err)
		}
		if digest(sealed) != begun.ManifestSHA256 {
			return abi.NewError(abi.CodeConflict, path+" is not the manifest that was sealed when the cell "+
				"began").WithReason("sealed")
		}
		first, err := report.ParseRunManifest(sealed)
		if err != nil {
			return err
		}
		if first.Module.SHA256 != m.Module.SHA256 || first.ConfigHash != m.ConfigHash {
			return abi.NewError(abi.CodeConflict, fmt.Sprintf("the cell began with module %.12s and configuration "+
				"%.12s, now they are %.12s and %.12s",
				first.Module.SHA256, first.ConfigHash, m.Module.SHA256, m.ConfigHash)).WithReason("sealed").
				WithHint("resume with the program and the lab file that it began with")
		}
		return nil
	}
	text := append(abi.Marshal(m), '\n')
	if err := rundir.WriteFile(path, text); err != nil {
		return err
	}
	return c.journal.Write(&journal.Line{Kind: journal.KindBegin,
		Begin: &journal.Begin{RunID: c.RunID, Label: c.Label, Replicate: c.Replicate,
			PackSHA256: c.Pack.ContentSHA256, LabSHA256: c.LabSHA256, ManifestSHA256: digest(text)}})
}

// refuseFed rejects a slot that keeps an archive, has followers, or was filled by a backfill: an evaluated memory may
// only contain what the cell records, and the pack's events must not be stored anywhere else.
func refuseFed(m *report.RunManifest) error {
	var why string
	switch {
	case m.Archive != nil:
		why = "keeps an archive"
	case len(m.Followers) > 0:
		why = fmt.Sprintf("has %s as a %s", m.Followers[0].Provider, m.Followers[0].Role)
	case slices.ContainsFunc(m.Steps, func(step report.RunStep) bool { return step.Name == host.StepBackfill }):
		why = "was filled by a backfill"
	default:
		return nil
	}
	return abi.NewError(abi.CodeInvalidArgument, "the slot "+why+", and an evaluation is of what it records alone").
		WithReason("fed").WithHint("leave memory.archive and memory.shadows out of the lab and of host.Options")
}

// personas runs a group of persons concurrently; the steps of each person run in order. The first error stops all.
func (c *cell) personas(ctx context.Context, group []pack.Persona) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var persons sync.WaitGroup
	for i := range group {
		persons.Go(func() {
			id := group[i].PersonaID
			p := &persona{cell: c, id: id, scope: abi.MemoryScope{RunID: c.RunID, PersonaID: id}, done: c.before.personas[id]}
			if p.done == nil {
				p.done = newDone().persona(id)
			}
			if err := p.walk(ctx); err != nil {
				stop(err)
			}
		})
	}
	persons.Wait()
	return context.Cause(ctx)
}

// persona is one persona of a running cell.
type persona struct {
	*cell
	id    string
	scope abi.MemoryScope
	done  *personaDone // from an earlier process
	// looked means that the inventory was compared with what an earlier process left.
	looked bool
	// canary is the last write that was tried while read-only and has not been searched for yet.
	canary *canary
	// unsearched is the last test session, until its conversations were searched for; doors belong to conversations.
	unsearched *testSession
	doors      []*subject.Door
}

// walk records the persona's sessions and runs the test sessions between them.
func (p *persona) walk(ctx context.Context) error {
	defer p.closeDoors()
	probes, err := p.probes()
	if err != nil {
		return err
	}
	session := 0
	var events []*pack.Event // of the present session
	for e, err := range p.pack.Events(p.id) {
		if err != nil {
			return err
		}
		if e.SessionIndex != session && session > 0 {
			if err := p.session(ctx, session, events, probes[session]); err != nil {
				return err
			}
			events = events[:0]
		}
		session, events = e.SessionIndex, append(events, e)
	}
	if session == 0 {
		return nil
	}
	if err := p.session(ctx, session, events, probes[session]); err != nil {
		return err
	}
	return p.lastCheck(ctx, session+1)
}

// session records a session's events and runs the test session after them.
func (p *persona) session(ctx context.Context, number int, events []*pack.Event, probes []*pack.Probe) error {
	work := func(ctx context.Context) error {
		for _, e := range events {
			if err := p.record(ctx, e); err != nil {
				return err
			}
		}
		return p.test(ctx, number, events[len(events)-1], probes)
	}
	recorded := !slices.ContainsFunc(events, func(e *pack.Event) bool { return !p.done.events[e.EventID] })
	if recorded && (len(probes) == 0 || p.done.session(number).closed) {
		return work(ctx) // an earlier process has done everything
	}
	return p.spanned(ctx, spanSession, func(s host.Span) { s.Number("memhost.eval.session", int64(number)) }, work)
}

// probes reads the persona's probes by the session after which they are asked.
func (p *persona) probes() (map[int][]*pack.Probe, error) {
	list := map[int][]*pack.Probe{}
	for probe, err := range p.pack.Probes(p.id) {
		if err != nil {
			return nil, err
		}
		list[probe.AfterSession] = append(list[probe.AfterSession], probe)
	}
	return list, nil
}

// record records one event, until the provider has it, refuses it permanently, or the attempts are used up. A refused
// event does not end the cell: scoring gives every probe that needs it the worst value. If the backend is gone, the
// cell ends.
func (p *persona) record(ctx context.Context, e *pack.Event) error {
	if p.done.events[e.EventID] {
		return nil
	}
	if err := p.stillThere(ctx); err != nil {
		return err
	}
	line := &journal.Line{Kind: journal.KindRecord, PersonaID: p.id, Session: e.SessionIndex}
	event := e.MemoryEvent(p.RunID)
	for attempt := 0; ; attempt++ {
		began := time.Now()
		receipt, err := p.slot.RecordEvent(ctx, event)
		r := &journal.Record{EventID: e.EventID, LatencyMS: since(began)}
		line.Record = r
		if err == nil {
			r.Status, r.Duplicate, r.Warnings = receipt.Status, receipt.Duplicate, codes(receipt.Warnings)
			r.Native = len(receipt.NativeIDs)
			if receipt.Trace != nil {
				r.IO = receipt.Trace.IO
			}
			if err := p.settle(ctx, event, receipt, r); err != nil {
				return err
			}
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.Error = abi.AsError(err)
		if !r.Error.Retryable || attempt == retries {
			break
		}
		if err := pauseAfter(ctx, r.Error); err != nil {
			return err
		}
	}
	var ends error
	if e := line.Record.Error; e != nil {
		ends = p.lost(ctx, e)
		line.Record.Failed = ends == nil
	}
	if err := p.journal.Write(line); err != nil {
		return err
	}
	if ends != nil {
		return ends
	}
	p.step("")
	return nil
}

// settle records an event again if its receipt says that it may not have arrived, or only in part. It waits as long as
// each receipt asks for, but in total no longer than the lab waits for memory. What is still unresolved is journaled as
// it is, and the wait before the next test session reports it as pending or unknown.
func (p *persona) settle(ctx context.Context, event *abi.MemoryEvent, receipt *abi.WriteReceipt,
	r *journal.Record) error {
	after, left := receipt.RetryAfterMS, p.Lab.Readiness.TimeoutMS
	for undecided(r.Status) && after != nil {
		wait := max(*after, 100)
		if left -= wait; left < 0 {
			return nil
		}
		if err := pause.For(ctx, time.Duration(wait)*time.Millisecond); err != nil {
			return err
		}
		again, err := p.slot.RecordEvent(ctx, event)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.Again++
		if err == nil {
			r.Status, r.Warnings, after = again.Status, codes(again.Warnings), again.RetryAfterMS
			continue
		}
		// The error says nothing about what was sent before: the event is still uncertain.
		e := abi.AsError(err)
		if !e.Retryable {
			return nil
		}
		if e.RetryAfterMS != nil {
			after = e.RetryAfterMS
		}
	}
	return nil
}

// undecided reports whether recording an event again may resolve its status.
func undecided(s abi.WriteStatus) bool { return s == abi.StatusUncertain || s == abi.StatusPartial }

// retries is how often a call that failed temporarily is repeated.
const retries = 5

// pauseAfter waits as long as an error asks for, by default one second.
func pauseAfter(ctx context.Context, e *abi.Error) error {
	wait := time.Second
	if e.RetryAfterMS != nil {
		wait = min(time.Minute, time.Duration(*e.RetryAfterMS)*time.Millisecond)
	}
	return pause.For(ctx, wait)
}

// affectsAllRequests reports whether an error would affect every other request too, until someone intervenes.
func affectsAllRequests(code abi.Code) bool {
	return code == abi.CodeUnavailable || code == abi.CodeRateLimited || code == abi.CodeUnauthenticated
}

// lost is the error that ends the cell if a backend is gone, so that it can be resumed at the same place. It is nil if
// the backend is well: the error then only concerns the one request, and is a result like any other.
func (c *cell) lost(ctx context.Context, e *abi.Error) error {
	if !affectsAllRequests(e.Code) {
		return nil
	}
	if e.Code == abi.CodeUnavailable {
		health, err := c.slot.Health(ctx)
		if err == nil && health.Status == abi.HealthOK {
			return nil
		}
	}
	failed := *e
	if failed.Hint == "" {
		failed.Hint = "`memhost eval resume` goes on at the same place"
	}
	return &failed
}

// step counts one event or retrieval.
func (c *cell) step(note string) {
	c.done.Add(1)
	c.note(note)
}

func (c *cell) note(what string) {
	if tell := c.options.Progress; tell != nil {
		tell(Progress{Label: c.Label, Replicate: c.Replicate, Done: int(c.done.Load()), Total: c.total, Note: what})
	}
}

func since(began time.Time) float64 { return float64(time.Since(began).Microseconds()) / 1000 }

func digest(text []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// codes returns the stable codes of warnings: the text after the colon may contain measured times.
func codes(warnings []string) []string {
	var list []string
	for _, w := range warnings {
		list = append(list, warningCode(w))
	}
	return list
}

func warningCode(warning string) string {
	for i := range len(warning) {
		if warning[i] == ':' {
			return warning[:i]
		}
	}
	return warning
}

func unusable(err error) error { return abi.WrapError(abi.CodeUnavailable, err.Error(), err) }
