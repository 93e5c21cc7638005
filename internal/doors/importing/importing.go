// Package importing records an exported conversation in two steps: Check receives the file, reads it and describes its
// content, and Confirm records it.
//
// It holds one file at a time, as a temporary file that only the slot's user can read. The file is removed when it was
// recorded, when the next one arrives, after fifteen minutes without a confirmation, and when the slot starts.
package importing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/pause"
	"github.com/memhost/memhost/internal/doors/resend"
	"github.com/memhost/memhost/internal/doors/server/wire"
	"github.com/memhost/memhost/internal/text/conversations"
	"github.com/memhost/memhost/internal/text/convert"
)

const (
	filePattern   = "import-*"
	confirmWithin = 15 * time.Minute
	mostProblems  = 20
	mostScopes    = 10
	retries       = 5
)

// Record records one event, as host.Contract does.
type Record = func(context.Context, *abi.MemoryEvent) (*abi.WriteReceipt, error)

// Importer handles one file at a time. Make one with New.
type Importer struct {
	dir     string
	listing report.EventLister
	pause   func(context.Context, time.Duration) error

	// busy holds a token while a file is being received or recorded.
	busy chan struct{}

	mu       sync.Mutex
	checked  *checkedFile // nil if no file waits for its confirmation
	progress wire.ImportProgress
}

// checkedFile is a file that waits for its confirmation.
type checkedFile struct {
	path         string
	source       conversations.Source
	events       int64
	needsScope   bool
	confirmation [sha256.Size]byte
	expired      *time.Timer
}

// New returns an importer that keeps its file in dir, which must exist, and removes what an earlier one left there.
// listing reports which events the slot has; nil if that is unknown.
//
// Errors: unavailable if dir cannot be read.
func New(dir string, listing report.EventLister) (*Importer, error) {
	left, err := filepath.Glob(filepath.Join(dir, filePattern))
	if err == nil {
		for _, path := range left {
			err = errors.Join(err, os.Remove(path))
		}
	}
	if err != nil {
		return nil, abi.WrapError(abi.CodeUnavailable, "removing an earlier import: "+err.Error(), err)
	}
	return &Importer{dir: dir, listing: listing, pause: pause.For, busy: make(chan struct{}, 1),
		progress: wire.ImportProgress{State: wire.ImportNone, Problems: []string{}}}, nil
}

// errBusy is the error for a second file.
func errBusy() *abi.Error {
	e := abi.NewError(abi.CodeRateLimited, "another file is being imported").WithReason("importing")
	soon := time.Second.Milliseconds()
	e.RetryAfterMS = &soon
	return e
}

func (i *Importer) begin() error {
	select {
	case i.busy <- struct{}{}:
		return nil
	default:
		return errBusy()
	}
}

func (i *Importer) end() { <-i.busy }

// Check receives a file of wire.MediaJSON or wire.MediaZip, reads it and describes its content. A file that waited for
// its confirmation is dropped.
//
// Errors: rate_limited while another file is received or recorded; invalid_argument for a file that is not a
// conversation; unavailable if it cannot be stored; those of body.
func (i *Importer) Check(ctx context.Context, media string, body io.Reader) (*wire.ImportCheck, error) {
	if err := i.begin(); err != nil {
		return nil, err
	}
	defer i.end()
	i.drop(nil)
	path, err := i.store(media, body)
	if err != nil {
		return nil, err
	}
	c := &checkedFile{path: path}
	check, err := i.read(ctx, c)
	if err != nil || check.Events == 0 {
		_ = os.Remove(path)
		return check, i.plain(err, path)
	}
	check.Confirmation = rand.Text()
	c.confirmation, c.events, c.needsScope = sha256.Sum256([]byte(check.Confirmation)), check.Events, check.NeedsScope
	i.mu.Lock()
	defer i.mu.Unlock()
	c.expired = time.AfterFunc(confirmWithin, func() { i.drop(c) })
	i.checked = c
	return check, nil
}

// store writes body to a temporary file, and removes it after an error.
func (i *Importer) store(media string, body io.Reader) (path string, err error) {
	name := filePattern + ".json"
	if media == wire.MediaZip {
		name = filePattern + ".zip"
	}
	f, err := os.CreateTemp(i.dir, name) // readable by its owner only
	if err != nil {
		return "", abi.WrapError(abi.CodeUnavailable, "storing the file: "+err.Error(), err)
	}
	_, err = io.Copy(f, body)
	if closed := f.Close(); err == nil && closed != nil {
		err = abi.WrapError(abi.CodeUnavailable, "storing the file: "+closed.Error(), closed)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// plain removes the temporary file's path from an error, because it means nothing to the sender.
func (i *Importer) plain(err error, path string) error {
	if err == nil {
		return nil
	}
	e := *abi.AsError(err)
	e.Message = plainText(e.Message, path)
	return &e
}

func plainText(text, path string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, path, "the file"), filepath.Base(path), "the file")
}

// items reads the events of a file one by one.
type items interface {
	Next() (convert.Item, error)
}

// open opens the reader for a file's form. Events that name no scope get whom.
func (c *checkedFile) open(whom abi.MemoryScope, known *conversations.KnownIDs) (items, func(), error) {
	o := convert.Options{RunID: whom.RunID, UserID: whom.PersonaID, AgentID: whom.AgentID, SkipAttachments: true}
	if c.source != "" {
		r, err := conversations.Open(c.source, []string{c.path}, conversations.Options{Options: o, Zone: time.UTC, Known: known})
		if err != nil {
			return nil, nil, err
		}
		return r, func() { _ = r.Close() }, nil
	}
	f, err := os.Open(c.path)
	if err != nil {
		return nil, nil, abi.WrapError(abi.CodeUnavailable, "reading the file: "+err.Error(), err)
	}
	r, err := convert.NewReader(convert.UTF8(f), o)
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return r, func() { _ = f.Close() }, nil
}

// placeholderScope is the placeholder scope of events that name none while a file is checked.
var placeholderScope = abi.MemoryScope{RunID: "\u2013", PersonaID: "\u2013"}

// read counts the content of a file.
func (i *Importer) read(ctx context.Context, c *checkedFile) (*wire.ImportCheck, error) {
	var err error
	if c.source, err = conversations.Detect([]string{c.path}); err != nil {
		return nil, err
	}
	if c.source == "" && filepath.Ext(c.path) == ".zip" {
		return nil, abi.NewError(abi.CodeInvalidArgument, "the archive has no conversations that this version knows").
			WithHint("it reads the exports and logs of " + conversations.Names() + "; unpack others, and send a file of them")
	}
	in, closeFile, err := c.open(placeholderScope, nil)
	if err != nil {
		return nil, err
	}
	defer closeFile()
	check := &wire.ImportCheck{Source: string(c.source), Title: "events or messages", LeftOut: []string{},
		Problems: []string{}, Scopes: []abi.MemoryScope{}}
	var first, last time.Time
	attachments := 0
	for ctx.Err() == nil {
		item, err := in.Next()
		var bad *convert.LineError
		switch {
		case errors.Is(err, io.EOF):
			if check.Events > 0 && !first.IsZero() {
				check.First, check.Last = first.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339)
			}
			describe(check, in, c.source, attachments)
			return check, nil
		case errors.As(err, &bad):
			check.CannotBeRead++
			if len(check.Problems) < mostProblems {
				check.Problems = append(check.Problems, plainText(bad.Error(), c.path))
			}
			continue
		case err != nil:
			return nil, err
		}
		check.Events++
		check.Messages += int64(len(item.Event.Messages))
		attachments += item.Attachments
		if at, err := abi.ParseTime(item.Event.Timestamp); err == nil {
			if first.IsZero() || at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
		scope := abi.MemoryScope{RunID: item.Event.RunID, PersonaID: item.Event.UserID}
		switch {
		case scope.RunID == placeholderScope.RunID || scope.PersonaID == placeholderScope.PersonaID:
			check.NeedsScope = true
		case len(check.Scopes) < mostScopes && !slices.Contains(check.Scopes, scope):
			check.Scopes = append(check.Scopes, scope)
		}
	}
	return nil, abi.WrapError(abi.CodeUnavailable, "the caller has gone", ctx.Err())
}

// describe adds the counts of a source's reader, or what was left out of other conversations.
func describe(check *wire.ImportCheck, in items, source conversations.Source, attachments int) {
	if r, ok := in.(*conversations.Reader); ok {
		counts := r.Counts()
		check.Title, check.Conversations, check.LeftOut = source.Title(), int64(counts.Conversations), append(check.LeftOut,
			counts.LeftOut()...)
		return
	}
	if attachments > 0 {
		check.LeftOut = append(check.LeftOut, fmt.Sprintf("parts of messages that are no text: %d", attachments))
	}
}

// Confirm starts recording the checked file, and returns at once; Progress reports how far it is. Recording lasts until
// ctx ends, which is the slot's; ended is called when it is over, or was refused.
//
// Errors: rate_limited while another file is received or recorded; not_found for a confirmation that was used or has
// expired; invalid_argument without a scope if events need one.
func (i *Importer) Confirm(ctx context.Context, q *wire.ImportConfirm, record Record, ended func()) (*wire.ImportProgress,
	error) {
	c, err := i.take(q)
	if err != nil {
		ended()
		return nil, err
	}
	i.set(func(p *wire.ImportProgress) {
		*p = wire.ImportProgress{State: wire.ImportRecording, Events: c.events, Problems: []string{}}
	})
	go func() {
		defer ended()
		defer i.end()
		err := i.record(ctx, c, q.Scope, record)
		_ = os.Remove(c.path)
		i.set(func(p *wire.ImportProgress) {
			if p.State = wire.ImportDone; err != nil {
				p.State, p.Error = wire.ImportStopped, abi.AsError(i.plain(err, c.path))
			}
		})
	}()
	return i.Progress(), nil
}

// take uses up a confirmation and marks the importer busy.
func (i *Importer) take(q *wire.ImportConfirm) (_ *checkedFile, err error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	if err := i.begin(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			i.end()
		}
	}()
	i.mu.Lock()
	defer i.mu.Unlock()
	c := i.checked
	switch {
	case c == nil || c.confirmation != sha256.Sum256([]byte(q.Confirmation)):
		return nil, abi.NewError(abi.CodeNotFound, "confirmation: no file waits for it; it was recorded, replaced by "+
			"another file, or is too old").WithHint("send the file again")
	case c.needsScope && q.Scope == nil:
		return nil, abi.NewError(abi.CodeInvalidArgument, "scope: missing, and events of the file name none")
	}
	i.checked = nil
	c.expired.Stop()
	return c, nil
}

// drop removes a file that waits for its confirmation: c, or any file if c is nil.
func (i *Importer) drop(c *checkedFile) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.checked == nil || c != nil && c != i.checked {
		return
	}
	i.checked.expired.Stop()
	_ = os.Remove(i.checked.path)
	i.checked = nil
}

// Progress returns the progress of the latest import.
func (i *Importer) Progress() *wire.ImportProgress {
	i.mu.Lock()
	defer i.mu.Unlock()
	p := i.progress
	p.Problems = slices.Clone(p.Problems)
	return &p
}

func (i *Importer) set(change func(*wire.ImportProgress)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(&i.progress)
}

// record records a file in order.
//
// Errors: read errors; a failure that retries did not cure, since later events must not overtake this one; the last of
// 25 failures in a row; one that would occur again for every event; unavailable if ctx ended.
func (i *Importer) record(ctx context.Context, c *checkedFile, scope *abi.MemoryScope, record Record) error {
	whom := placeholderScope
	if scope != nil {
		whom = *scope
	}
	known, err := i.known(ctx, c, whom)
	if err != nil {
		return err
	}
	in, closeFile, err := c.open(whom, known)
	if err != nil {
		return err
	}
	defer closeFile()
	inRow, sent := 0, int64(0)
	for {
		item, err := in.Next()
		var bad *convert.LineError
		switch {
		case errors.Is(err, io.EOF):
			// The reader left out what the slot has under an earlier id.
			i.set(func(p *wire.ImportProgress) { p.Known += max(c.events-sent, 0) })
			return nil
		case errors.As(err, &bad): // counted when the file was checked
			continue
		case err != nil:
			return err
		}
		sent++
		receipt, err := i.send(ctx, item.Event, record)
		if err == nil {
			inRow = 0
			i.set(func(p *wire.ImportProgress) { count(p, receipt) })
			continue
		}
		e := abi.AsError(err)
		if e.Code == abi.CodeConflict { // the slot has it with another text, or forgot it on request
			inRow = 0
			i.set(func(p *wire.ImportProgress) { p.Known++ })
			continue
		}
		inRow++
		i.set(func(p *wire.ImportProgress) { fail(p, item.Event.EventID+": "+e.Message) })
		if ctx.Err() != nil || e.Retryable || resend.OfSlot(e) || inRow == resend.MostFailedInRow {
			return e
		}
	}
}

func fail(p *wire.ImportProgress, problem string) {
	p.Failed++
	if len(p.Problems) < mostProblems {
		p.Problems = append(p.Problems, problem)
	}
}

func count(p *wire.ImportProgress, r *abi.WriteReceipt) {
	switch {
	case r.Status == abi.StatusUncertain || r.Status == abi.StatusPartial:
		fail(p, r.EventID+": is "+string(r.Status)+"; import the file again to settle it")
	case r.Duplicate:
		p.Known++
	case r.Status == abi.StatusSkippedReadOnly || r.Status == abi.StatusNotRetained:
		p.NotKept++
	default:
		p.Recorded++
	}
}

// known returns the ids of the events that the slot has, for conversations whose turns were recorded under other ids
// earlier.
func (i *Importer) known(ctx context.Context, c *checkedFile, scope abi.MemoryScope) (*conversations.KnownIDs, error) {
	if i.listing == nil || c.source == "" {
		return nil, nil
	}
	ids, err := report.EventIDs(ctx, i.listing, scope)
	if err != nil || ids == nil {
		return nil, err
	}
	return conversations.NewKnownIDs(ids), nil
}

// send records an event. It retries temporary failures, and receipts that another try can settle.
func (i *Importer) send(ctx context.Context, e *abi.MemoryEvent, record Record) (*abi.WriteReceipt, error) {
	for try := 0; ; try++ {
		receipt, err := record(ctx, e)
		var problem *abi.Error
		if err != nil {
			problem = abi.AsError(err)
		} else {
			problem = resend.Unsettled(receipt)
		}
		if problem == nil || !problem.Retryable || try == retries || i.pause(ctx, resend.Pause(try, problem)) != nil {
			return receipt, err
		}
	}
}
