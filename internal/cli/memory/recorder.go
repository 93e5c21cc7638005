package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/doors/resend"
	"github.com/memhost/memhost/internal/text/convert"
)

const (
	// maxBatch bounds the number of events in a call, and maxBatchBytes their size: together they stay below what a
	// slot accepts.
	maxBatch      = 32
	maxBatchBytes = 4 << 20
	// reasonContent is the reason of a conflict: the slot has the event with other content.
	reasonContent = "event_content"
	// maxListed bounds the failures whose details are kept.
	maxListed = 1000
)

// Recorder sends events to a slot in the order of the input.
type Recorder struct {
	Slot      host.Contract
	Batch     int
	Retries   int
	keepGoing bool
	Sleep     func(context.Context, time.Duration)
	Out       *cli.Output
	Progress  *cli.Progress

	name        string // of the file being recorded, if there are several
	Sum         recordSummary
	failedInRow int
}

// BatchSize is the number of events per call. It is 1 for a provider that takes events one by one, so that an event is
// not sent before an earlier one that failed for now.
func BatchSize(ctx context.Context, slot host.Contract) int {
	c, err := slot.Capabilities(ctx)
	if err == nil && slices.Contains(c.Capabilities, abi.OpRecordEvents) {
		return maxBatch
	}
	return 1
}

// itemReader returns the events of an input, one at a time. A *convert.LineError concerns one line; later lines can
// still be read. io.EOF is the end.
type itemReader interface{ Next() (convert.Item, error) }

// readResult is one result of the reader.
type readResult struct {
	item convert.Item
	err  error
}

// Run records everything. soft ends it between two calls, hard immediately.
//
// Errors: ErrInterrupted; an error that stops the reader; an error of the slot that would occur again.
func (r *Recorder) Run(soft, hard context.Context, in itemReader) error {
	reads := make(chan readResult, 2*maxBatch)
	go func() { // a read from a pipe may block forever, so an interrupt does not wait for it
		defer close(reads)
		for {
			item, err := in.Next()
			select {
			case reads <- readResult{item, err}:
			case <-soft.Done():
				return
			}
			var line *convert.LineError
			if err != nil && !errors.As(err, &line) {
				return
			}
		}
	}()
	var batch []convert.Item
	bytes := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := r.send(soft, hard, batch)
		batch, bytes = nil, 0
		return err
	}
	for {
		next, ok := r.next(soft, reads, len(batch) > 0)
		switch {
		case !ok: // nothing to read at the moment, so send what there is
			if err := flush(); err != nil {
				return err
			}
			continue
		case soft.Err() != nil:
			return cli.ErrInterrupted
		case next.err == io.EOF:
			return flush()
		case next.err != nil:
			if err := flush(); err != nil {
				return err
			}
			if err := r.badLine(next.err); err != nil {
				return err
			}
			continue
		}
		weight := weightOf(next.item.Event)
		if len(batch) > 0 && bytes+weight > maxBatchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		batch, bytes = append(batch, next.item), bytes+weight
		if len(batch) >= r.Batch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
}

// next takes the next result. With impatient it does not wait: ok is false if there is none.
func (r *Recorder) next(soft context.Context, reads <-chan readResult, impatient bool) (_ readResult, ok bool) {
	if impatient {
		select {
		case v, open := <-reads:
			return orEOF(v, open), true
		case <-soft.Done():
			return readResult{}, true
		default:
			return readResult{}, false
		}
	}
	select {
	case v, open := <-reads:
		return orEOF(v, open), true
	case <-soft.Done():
		return readResult{}, true
	}
}

func orEOF(v readResult, open bool) readResult {
	if !open {
		return readResult{err: io.EOF}
	}
	return v
}

// badLine counts a line that cannot be read.
func (r *Recorder) badLine(err error) error {
	var line *convert.LineError
	var whole *abi.Error
	if !errors.As(err, &line) && errors.As(err, &whole) {
		return whole
	}
	if !errors.As(err, &line) {
		return abi.WrapError(abi.CodeInvalidArgument, "reading the input: "+err.Error(), err)
	}
	if !r.keepGoing {
		e := *line.Err
		e.Message = line.Error()
		if e.Hint == "" {
			e.Hint = "what stood before that line was recorded; bad lines are left out with --keep-going"
		}
		return &e
	}
	r.Sum.BadLines++
	r.Sum.LastLine = line.Line
	r.Sum.fail(recordFailure{File: r.name, Line: line.Line, Error: line.Err})
	return nil
}

// weightOf estimates the size of an event in a request, in bytes.
func weightOf(e *abi.MemoryEvent) int {
	n := 512
	for _, m := range e.Messages {
		n += 128
		if m.Content != nil {
			n += len(*m.Content)
		}
		for _, c := range m.ToolCalls {
			n += 64 + len(c.Arguments)
		}
	}
	for key, value := range e.Metadata {
		n += len(key) + len(value)
	}
	return n
}

// send delivers events and retries those that failed with a retryable error.
func (r *Recorder) send(soft, hard context.Context, items []convert.Item) error {
	for try := 0; ; try++ {
		again, problem, err := r.sendOnce(hard, items, try >= r.Retries)
		if err != nil || len(again) == 0 {
			return err
		}
		if try >= r.Retries {
			r.Sum.StoppedAt = again[0].Line
			return r.Sum.at(problem, again[0].Line)
		}
		pause := resend.Pause(try, problem)
		r.Progress.Clear()
		r.Out.Note("%s %d: %s; trying again in %s (%d of %d)", r.Sum.unit(), again[0].Line, cli.FirstLine(problem.Message),
			pause, try+1, r.Retries)
		r.Sleep(soft, pause)
		if soft.Err() != nil {
			return cli.ErrInterrupted
		}
		items = again
	}
}

// sendOnce makes one call. again are the events to retry, with the first one's error; err stops the recording. An
// uncertain event is retried if its receipt says when it can be settled; after the last try it is counted, and the
// recording continues.
func (r *Recorder) sendOnce(ctx context.Context, items []convert.Item, last bool) (again []convert.Item,
	problem *abi.Error, err error) {
	answers, err := r.call(ctx, items)
	if err != nil {
		if len(items) > 1 && !abi.AsError(err).Retryable && !resend.OfSlot(abi.AsError(err)) {
			return r.oneByOne(ctx, items, last)
		}
		for range items {
			answers = append(answers, abi.ReceiptOrError{Error: abi.AsError(err)})
		}
	}
	if ctx.Err() != nil && err != nil {
		return nil, nil, cli.ErrInterrupted
	}
	var stop error
	for i, answer := range answers {
		item := items[i]
		e := answer.Error
		if e == nil && !last {
			e = resend.Unsettled(answer.Receipt)
		}
		switch {
		case e == nil:
			r.Sum.add(answer.Receipt, item)
			r.failedInRow = 0
		case e.Code == abi.CodeConflict && e.Reason == "forgotten":
			r.Sum.LastLine, r.failedInRow = item.Line, 0
			r.Sum.Forgotten++
		case e.Code == abi.CodeConflict && e.Reason == reasonContent && r.Sum.Conversations != nil:
			r.Sum.LastLine, r.failedInRow = item.Line, 0
			r.Sum.Known++
		case e.Retryable:
			if problem == nil {
				problem = e
			}
			again = append(again, item)
			continue
		default:
			r.Sum.LastLine = item.Line
			r.Sum.Failed++
			r.Sum.fail(recordFailure{File: r.name, Line: item.Line, EventID: item.Event.EventID, Error: e})
			r.failedInRow++
			// The other answers still count, because those events were delivered.
			if stop == nil && (resend.OfSlot(e) || r.failedInRow == resend.MostFailedInRow && !r.keepGoing) {
				stop = r.Sum.at(e, item.Line)
			}
		}
		r.Progress.Add(1)
	}
	if stop != nil {
		return nil, nil, stop
	}
	return again, problem, nil
}

// oneByOne sends the events of a call that was rejected as a whole.
func (r *Recorder) oneByOne(ctx context.Context, items []convert.Item, last bool) (again []convert.Item,
	problem *abi.Error, err error) {
	for i := range items {
		failed, e, err := r.sendOnce(ctx, items[i:i+1], last)
		if err != nil {
			return nil, nil, err
		}
		if len(failed) > 0 {
			return items[i:], e, nil // the others keep their order
		}
	}
	return nil, nil, nil
}

func (r *Recorder) call(ctx context.Context, items []convert.Item) ([]abi.ReceiptOrError, error) {
	if len(items) == 1 {
		receipt, err := r.Slot.RecordEvent(ctx, items[0].Event)
		if err != nil {
			return nil, err
		}
		return []abi.ReceiptOrError{{Receipt: receipt}}, nil
	}
	batch := &abi.EventBatch{Events: make([]abi.MemoryEvent, len(items))}
	for i, item := range items {
		batch.Events[i] = *item.Event
	}
	answer, err := r.Slot.RecordEvents(ctx, batch)
	if err != nil {
		return nil, err
	}
	if len(answer.Receipts) != len(items) {
		return nil, abi.NewError(abi.CodeInternal,
			fmt.Sprintf("the slot answered %d receipts for %d events", len(answer.Receipts), len(items)))
	}
	return answer.Receipts, nil
}
