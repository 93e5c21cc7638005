package conformance

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// baseline is the result of one turn when nothing goes wrong.
type baseline struct {
	// writes is how many native calls carry it, mentions how often raw holds its name.
	writes, mentions int
	noAnswer         *outcome
}

// checkDelivery is clause 12.
func checkDelivery(b *bench) {
	b.part("resent", "a turn that is recorded again answers with its first receipt, and nothing is sent", b.resent)
	b.part("conflict", "the same event_id with other content is a conflict", b.conflicts)
	b.part("at_once", "several callers with the same turn share one delivery", b.atOnce)
	b.part("new_generation", "after a reset nothing is suppressed by an old receipt", b.afterReset)
	u := b.baseline()
	for _, c := range []crash{
		{"before_send", "the host is killed before a turn is sent", false, false},
		{"after_send", "the host is killed when a turn was sent, before its answer", true, false},
		{"after_commit", "the host is killed when a turn was delivered, before its caller knew", true, true},
	} {
		b.part(c.name, c.words+": nothing is lost, and nothing doubled that is not announced", func() outcome {
			return b.checkKilled(c, u)
		})
	}
	b.part("late", "the backend takes a turn when its client has gone: nothing is doubled that is not announced",
		func() outcome { return b.lateCommit(u) })
	b.part("partial", "the backend takes a part of a turn: the rest follows, and nothing is doubled that is not "+
		"announced", func() outcome { return b.partCommit(u) })
}

func (b *bench) resent() outcome {
	s := b.scope("resent", "p")
	e := b.event(s, b.kit.target.Probe.Wordings[0](b.kit.names.name()))
	first, err := b.record(b.ctx, e)
	if err != nil {
		return refused("record_event", err)
	}
	mark := b.wire.mark()
	second, err := b.record(b.ctx, e)
	switch {
	case err != nil:
		return refused("record_event, again", err)
	case !second.Duplicate || !slices.ContainsFunc(second.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "duplicate_event:")
	}):
		return failed("the second receipt does not say duplicate")
	case len(changes(b.wire.since(mark))) > 0:
		return failed("the host saw it sent again: %s", routesOf(changes(b.wire.since(mark))))
	}
	return passed("%s, then duplicate", first.Status)
}

func (b *bench) conflicts() outcome {
	s := b.scope("conflict", "p")
	e := b.event(s, b.kit.target.Probe.Wordings[0](b.kit.names.name()))
	if _, err := b.record(b.ctx, e); err != nil {
		return refused("record_event", err)
	}
	text := "Something else."
	other := *e
	other.Messages = []abi.Message{{Role: abi.RoleUser, Content: &text}}
	if _, err := b.record(b.ctx, &other); abi.CodeOf(err) != abi.CodeConflict {
		return failed("answered %v, want conflict", err)
	}
	return passed("conflict")
}

func (b *bench) atOnce() outcome {
	s := b.scope("at_once", "p")
	name := b.kit.names.name()
	e := b.event(s, b.kit.target.Probe.Wordings[0](name))
	mark := b.wire.mark()
	var mu sync.Mutex
	firsts := 0
	var wrong error
	parallel(4, 4, func(int) {
		r, err := b.record(b.ctx, e)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			wrong = err
		case !r.Duplicate:
			firsts++
		}
	})
	switch {
	case wrong != nil:
		return refused("record_event", wrong)
	case firsts != 1:
		return failed("%d of 4 callers were told that their delivery was the first", firsts)
	}
	return passed("one delivery, %d native calls", writesOf(b.wire.since(mark), name))
}

func (b *bench) afterReset() outcome {
	s := b.scope("generation", "p")
	e := b.event(s, b.kit.target.Probe.Wordings[0](b.kit.names.name()))
	if _, err := b.record(b.ctx, e); err != nil {
		return refused("record_event", err)
	}
	reset, err := b.slot.ResetScope(b.ctx, s)
	switch {
	case err != nil:
		return refused("reset_scope", err)
	case reset.Status != abi.ResetDone:
		return inconclusive("the reset came to %s", reset.Status)
	}
	again, err := b.record(b.ctx, e)
	switch {
	case err != nil:
		return refused("record_event, after the reset", err)
	case again.Duplicate:
		return failed("the new generation was not told: the receipt says duplicate")
	}
	return passed("delivered again: %s", again.Status)
}

// baseline records one turn and finds its result.
func (b *bench) baseline() baseline {
	mark := b.wire.mark()
	p := b.plant(b.scope("usual", "p"))
	if o := control(p); o != nil {
		return baseline{noAnswer: o}
	}
	return baseline{writes: writesOf(b.wire.since(mark), p.name) / len(p.events),
		mentions: mentions(p.found, p.name) / len(p.events)}
}

// crash is a moment at which the host is killed.
type crash struct {
	name, words string
	// sent: the backend gets the turn; kept: the receipt is in the ledger.
	sent, kept bool
}

var errKilled = errors.New("conformance kit: the host was killed here")

// killer copies the data folder at the moment of the crash; from then on the old host can reach no backend.
type killer struct {
	crash
	name      string
	from, to  string
	copyStore func(from, to string) error

	mu   sync.Mutex
	dead bool
	err  error
}

// intercept implements host.Interceptor.
func (k *killer) intercept(ctx context.Context, call host.NativeCall, send next) (host.NativeAnswer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := exchange{call: call}
	switch {
	case k.dead:
		return host.NativeAnswer{}, errKilled
	case k.kept || call.Class == abi.ClassRead || !x.carries(k.name):
		return send(ctx)
	}
	if k.sent {
		_, _ = send(ctx)
	}
	k.kill()
	return host.NativeAnswer{}, errKilled
}

func (k *killer) kill() { k.dead, k.err = true, k.copyStore(k.from, k.to) }

// copyFolder copies what a killed host would leave behind. No commit is half done then: the interceptor holds the only
// call.
func copyFolder(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, rest), 0o700)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rest), data, 0o600)
	})
}

// afterSettling is a clock on which every request that was ever sent has landed or never will, as the manifest promises
// by settle_ms (30 s without it).
func (b *bench) afterSettling() func() time.Time {
	ahead := max(30*time.Second, time.Duration(b.kit.module.Manifest.SettleMS)*time.Millisecond) + time.Minute
	return func() time.Time { return b.kit.options.Now().Add(ahead) }
}

// checkKilled records a turn on a host that is killed while it does so, and again on a host that opens the same data
// folder.
func (b *bench) checkKilled(c crash, u baseline) outcome {
	if u.noAnswer != nil {
		return *u.noAnswer
	}
	if u.writes == 0 && !c.kept {
		return notChecked("no native call carries a turn: state and receipt are committed in one transaction")
	}
	s := b.scope(c.name, "p")
	old, err := b.open(filepath.Join(b.kit.dir, "12-"+c.name), 2, nil)
	if err != nil {
		return refused("open", err)
	}
	defer old.close()
	name := b.kit.names.name()
	e := b.event(s, b.kit.target.Probe.Wordings[0](name))
	k := &killer{crash: c, name: name, from: old.dir, to: old.dir + "-left", copyStore: copyFolder}
	if b.kit.options.CopyStore != nil {
		k.copyStore = b.kit.options.CopyStore
	}
	mark := b.wire.mark()
	b.wire.during(k.intercept, func() {
		_, err = old.record(b.ctx, e)
		if c.kept {
			k.kill()
		}
	})
	old.scopes = nil // the next host cleans up
	switch {
	case c.kept && err != nil:
		return refused("record_event", err)
	case k.err != nil:
		return failed("the data folder could not be copied: %v", k.err)
	case !k.dead:
		return inconclusive("the turn never left the host")
	}
	old.close()
	revived, err := b.open(k.to, 2, b.afterSettling())
	if err != nil {
		return refused("open what the killed host left", err)
	}
	defer revived.leave()
	again, err := revived.record(b.ctx, e)
	if err != nil {
		return refused("record_event, on what the killed host left", err)
	}
	if c.kept && !again.Duplicate {
		return failed("the turn was in the ledger, and the receipt does not say duplicate")
	}
	return b.counted(revived, s, name, again, u, writesOf(b.wire.since(mark), name))
}

// leave cleans up and closes a rig that only one part needs.
func (r *rig) leave() {
	if r.slot == nil {
		return
	}
	for _, s := range r.scopes {
		_, _ = r.slot.ResetScope(r.bench.ctx, s)
	}
	r.close()
}

// counted reports whether a turn is there once. writes is how often it was sent and taken. If the receipt says, even
// after every request has landed, that the outcome is unknown, both are allowed.
func (b *bench) counted(r *rig, s abi.MemoryScope, name string, receipt *abi.WriteReceipt, u baseline,
	writes int) outcome {
	if !isUncertain(receipt) {
		if o := r.wait(s); o != nil {
			return *o
		}
	}
	result, err := r.ask(s)
	if err != nil {
		return refused("retrieve", err)
	}
	doubled := writes > u.writes && mentions(result, name) > u.mentions
	switch {
	case isUncertain(receipt):
		return passed("announced: %s, there %d times, sent and taken %d times", receipt.Status,
			mentions(result, name)/max(1, u.mentions), writes)
	case doubled:
		return failed("doubled and not announced: sent and taken %d times, once it takes %d; the receipt says %s %v",
			writes, u.writes, receipt.Status, receipt.Warnings)
	case !holds(result, name):
		return failed("lost and not announced; the receipt says %s", receipt.Status)
	}
	return passed("there once, %d native calls, the receipt says %s, duplicate %v", writes, receipt.Status,
		receipt.Duplicate)
}

// recordedAgain closes a rig, records its turn once more on another that begins when every request has landed, and
// counts it. mark is where the calls that carried the turn begin; when describes the moment, for messages.
func (b *bench) recordedAgain(r *rig, dir string, e *abi.MemoryEvent, s abi.MemoryScope, name string, u baseline, mark int,
	when string) outcome {
	r.scopes = nil
	r.close()
	later, err := b.open(dir, 2, b.afterSettling())
	if err != nil {
		return refused("open", err)
	}
	defer later.leave()
	last, err := later.record(b.ctx, e)
	if err != nil {
		return refused("record_event, "+when, err)
	}
	return b.counted(later, s, name, last, u, writesOf(b.wire.since(mark), name))
}

// lateCommit lets a turn arrive when the host has given up on it, and after it was recorded again.
func (b *bench) lateCommit(u baseline) outcome {
	switch {
	case u.noAnswer != nil:
		return *u.noAnswer
	case u.writes == 0:
		return notChecked("no native call carries a turn: there is nothing that could be late")
	}
	s := b.scope("latecommit", "p")
	dir := filepath.Join(b.kit.dir, "12-late")
	r, err := b.open(dir, 2, nil)
	if err != nil {
		return refused("open", err)
	}
	defer r.close()
	name, h := b.kit.names.name(), &holder{}
	e := b.event(s, b.kit.target.Probe.Wordings[0](name))
	mark := b.wire.mark()
	var first *abi.WriteReceipt
	b.wire.during(h.intercept(name), func() { first, err = r.record(b.ctx, e) })
	switch {
	case len(h.held) == 0:
		return inconclusive("the turn never left the host")
	case err == nil && first.Status != abi.StatusUncertain && first.Status != abi.StatusPartial:
		return failed("the connection was dropped, and the receipt says %s", first.Status)
	}
	second, err := r.record(b.ctx, e)
	if err == nil && second.Status == abi.StatusUncertain && second.Duplicate {
		h.release(b.ctx)
		return failed("uncertain, and yet called a duplicate, which is known to have arrived")
	}
	if err == nil && writesOf(b.wire.since(mark), name) > 0 && !isUncertain(second) {
		h.release(b.ctx)
		return failed("sent again while the first request could still land, and the receipt says %s", second.Status)
	}
	h.release(b.ctx)
	return b.recordedAgain(r, dir, e, s, name, u, mark, "once the first request had landed")
}

// partCommit lets the second of several native calls of a turn fail.
func (b *bench) partCommit(u baseline) outcome {
	switch {
	case u.noAnswer != nil:
		return *u.noAnswer
	case u.writes < 2:
		return notChecked("%d native calls carry a turn: it is there as a whole, or not at all", u.writes)
	}
	s := b.scope("partial", "p")
	dir := filepath.Join(b.kit.dir, "12-partial")
	r, err := b.open(dir, 2, nil)
	if err != nil {
		return refused("open", err)
	}
	defer r.close()
	name := b.kit.names.name()
	e := b.event(s, b.kit.target.Probe.Wordings[0](name))
	mark, sent := b.wire.mark(), 0
	var first *abi.WriteReceipt
	b.wire.during(func(ctx context.Context, call host.NativeCall, send next) (host.NativeAnswer, error) {
		x := exchange{call: call}
		if call.Class != abi.ClassRead && x.carries(name) {
			if sent++; sent > 1 {
				return host.NativeAnswer{}, errDropped
			}
		}
		return send(ctx)
	}, func() { first, err = r.record(b.ctx, e) })
	if err == nil && first.Status != abi.StatusPartial && first.Status != abi.StatusUncertain {
		return failed("a part of the turn was taken, and the receipt says %s", first.Status)
	}
	return b.recordedAgain(r, dir, e, s, name, u, mark, "once the backend takes it")
}
