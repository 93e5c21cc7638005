package host

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/host/internal/egress"
	"github.com/memhost/memhost/internal/configuration/schema"
)

// recording is a tape that records.
type recording struct {
	file       *os.File
	writer     *cassette.Writer // nil until the first provider serves
	header     cassette.Header
	now        func() time.Time
	timeless   bool
	operations int64
	redactors  []egress.Redactor
	// redacted: a secret was removed from the take under way.
	redacted bool
	// seen are the host's records that a replay has, or makes itself.
	seen map[string]bool
	// loading is the provider that the operation under way loads.
	loading *cassette.Load
	err     error
}

// startRecording makes the cassette's file.
func startRecording(o *CassetteOptions, now func() time.Time, logger hclog.Logger, version, commit string) (*tape, error) {
	seed := o.Seed
	if len(seed) == 0 {
		seed = make([]byte, 16)
		if _, err := rand.Read(seed); err != nil {
			return nil, abi.AsError(err)
		}
	}
	file, err := cassette.Create(o.Path)
	if err != nil {
		return nil, err
	}
	t := newTape(logger, seed)
	t.record = &recording{file: file, now: now, timeless: o.Timeless, seen: map[string]bool{},
		header: cassette.Header{Revision: cassette.Revision, HostVersion: version, HostCommit: commit, Clock: "virtual", Seed: hex.EncodeToString(seed)}}
	return t, nil
}

// measured is a duration as it is recorded: in whole microseconds.
func (r *recording) measured(d time.Duration) time.Duration {
	if r.timeless {
		return 0
	}
	return d.Truncate(time.Microsecond)
}

// text is a text as it may stand in a cassette.
func (t *tape) text(b []byte) cassette.Text {
	clean := b
	for _, r := range t.record.redactors {
		clean = r.Bytes(clean)
	}
	if !bytes.Equal(clean, b) {
		t.record.redacted = true
	}
	return bytes.Clone(clean)
}

func (t *tape) encoded(v abi.Encodable) cassette.Text {
	if v == nil {
		return nil
	}
	return t.text(abi.Marshal(v))
}

// load notes the provider that the operation under way loads, and whose secrets must not be recorded.
//
// Errors: invalid_argument for a block with what looks like a credential: the guest may send it anywhere, and so it may come to stand anywhere.
func (t *tape) load(p *Provider) error {
	if t == nil || t.record == nil {
		return nil
	}
	plain, err := schema.CanonicalJSON(p.block)
	if err != nil {
		return err
	}
	if !bytes.Equal(plain, p.shownConfig()) {
		return abi.NewError(abi.CodeInvalidArgument, p.name+": the block holds what looks like a credential, so no cassette can be recorded of it").
			WithHint("put credentials under secrets, and name them in the block: {secret: NAME}")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.record.redactors = append(t.record.redactors, p.network.Redactor())
	l := &cassette.Load{Module: p.runModule(), ABI: p.module.Manifest.ABI, Provider: p.name, Word: p.word, ConfigHash: p.configHash(), Config: p.shownConfig(),
		Namespace: p.config.Namespace, AgentScoped: p.config.AgentScoped, TestSessions: p.config.TestSessions, Tokenizer: p.tokens.Name(), Scope: p.config.Scope,
		Limits: cassette.Limits{Memory: p.limits.MemoryBytes, HighWater: p.limits.HighWaterBytes, Request: p.limits.RequestBytes, Response: p.limits.ResponseBytes}}
	for name, s := range p.config.Secrets {
		l.Secrets = append(l.Secrets, cassette.Secret{Name: name, Origin: s.Origin})
	}
	slices.SortFunc(l.Secrets, func(a, b cassette.Secret) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	t.record.loading = l
	return nil
}

// end closes the take under way. The caller holds mu.
func (t *tape) end(answer abi.Encodable, err error) {
	k := t.take
	t.take = nil
	if t.play != nil {
		return
	}
	switch {
	case err != nil:
		k.Error = t.encoded(abi.AsError(err))
	case answer != nil:
		k.Answer = t.encoded(answer)
	}
	r := t.record
	loaded := r.loading
	r.loading, k.Redacted, r.redacted = nil, r.redacted, false
	switch {
	case k.Name == cassette.OpOpen && r.writer == nil && (err != nil || loaded == nil):
		return // nothing serves: there is nothing to record
	case k.Name == cassette.OpOpen && r.writer == nil:
		r.header.Load, r.header.Created = *loaded, k.At
		var e error
		if r.writer, e = cassette.NewWriter(r.file, r.header); e != nil {
			t.broken(e)
			return
		}
	case k.Name == cassette.OpSwap:
		k.Load = loaded
	}
	if r.writer == nil || r.err != nil {
		return
	}
	if e := r.writer.Add(&k.Operation); e != nil {
		t.broken(e)
		return
	}
	r.operations++
}

// broken ends the recording, not the slot.
func (t *tape) broken(err error) {
	t.record.err = err
	t.logger.Error("the cassette cannot be written: it ends here, the slot goes on", "file", t.record.file.Name(), "operations", t.record.operations, "error", err)
}

// warning is what health says of a recording that broke; "" for nothing.
func (t *tape) warning() string {
	if t == nil || t.record == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.record.err == nil {
		return ""
	}
	return fmt.Sprintf("cassette_broken: the cassette could not be written after %d operations: %v", t.record.operations, t.record.err)
}

// close ends the cassette. One that never began is removed.
func (t *tape) close() error {
	if t == nil || t.record == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.record
	if r.writer == nil {
		return errors.Join(r.file.Close(), os.Remove(r.file.Name()))
	}
	if r.err != nil {
		return r.file.Close()
	}
	err := errors.Join(r.writer.End(), r.file.Sync(), r.file.Close())
	if err != nil {
		return abi.WrapError(abi.CodeUnavailable, "cassette: "+err.Error(), err)
	}
	return nil
}

// start begins the start of an instance.
func (t *tape) start() *entryTape {
	if t == nil {
		return nil
	}
	if t.play != nil {
		return t.playStart()
	}
	return t.recordEntry(abi.InitExport, nil)
}

// enter begins an entry into the guest. stop is what ends it.
func (t *tape) enter(c *call, envelope *abi.Envelope, stop context.CancelFunc) *entryTape {
	if t == nil {
		return nil
	}
	if t.play != nil {
		return t.playEntry(c, envelope, stop)
	}
	return t.recordEntry(c.op, abi.Marshal(envelope))
}

func (t *tape) recordEntry(op string, request []byte) *entryTape {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := &entryTape{tape: t}
	if t.take == nil {
		t.open(&take{Operation: cassette.Operation{Name: cassette.OpBackground}})
		e.alone = true
	}
	e.entry = &cassette.Entry{Op: op, At: stampOf(t.last), Request: t.text(request)}
	return e
}

// leave ends an entry: answer is the guest's, or err what happened instead. Its error takes the place of err.
func (e *entryTape) leave(c *call, answer []byte, isError bool, err error) error {
	if e == nil {
		return err
	}
	if e.tape.play != nil {
		return e.playLeave(c, answer, isError, err)
	}
	t := e.tape
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		failure := abi.AsError(err)
		e.entry.Failure, e.entry.Stopped = t.text(abi.Marshal(failure)), failure.Reason == reasonStopped
	} else {
		e.entry.Answer, e.entry.IsError = t.text(answer), isError
	}
	c.queued, c.guest = t.record.measured(c.queued), t.record.measured(c.guest)
	e.entry.QueuedUS, e.entry.GuestUS = c.queued.Microseconds(), c.guest.Microseconds()
	if t.take != nil {
		t.take.Entries = append(t.take.Entries, *e.entry)
	}
	if e.alone {
		t.end(nil, nil)
	}
	return err
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
