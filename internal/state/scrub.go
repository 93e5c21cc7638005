package state

import (
	"bytes"
	"context"
	"fmt"
)

var _ Scrubber = (*Bolt)(nil)

// Scrub overwrites the free pages of the data file with zeros, so that deleted or replaced content is no longer in the
// file. The file keeps its size. Readers and writers wait while it runs: it costs writing those free pages that are not
// zero yet, and a sync before and after.
//
// A crash in the middle does no harm: live pages were synced before, and are not touched. Copies made by the file
// system or the disk are out of reach.
//
// Errors: ErrUnavailable if the file cannot be written, ErrClosed, or the context's error; in these cases some content
// may be left.
func (s *Bolt) Scrub(ctx context.Context) error {
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	if closing {
		return errClosed("scrub")
	}
	if e := s.broken.Load(); e != nil {
		return e
	}
	s.scrubbing.Lock() // no reader has a page that is about to be overwritten
	defer s.scrubbing.Unlock()
	tx, err := s.begin(true) // no writer allocates one
	if err != nil {
		return s.fail("scrub", err)
	}
	err = guard(func() error { return s.overwriteFree(ctx) })
	_ = tx.Rollback() // it changed nothing
	return s.fail("scrub", err)
}

// Outside implements Scrubber: nothing is left, because the file is overwritten.
func (s *Bolt) Outside() []string { return nil }

// overwriteFree is Scrub inside its transaction.
func (s *Bolt) overwriteFree(ctx context.Context) error {
	// The newest meta page must be on disk: the previous one refers to pages that are free now.
	if err := s.file.Sync(); err != nil {
		return err
	}
	free, size, err := listFree(s.file)
	if err != nil {
		return err
	}
	zeros, page := make([]byte, size), make([]byte, size)
	for _, id := range free {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("state: scrub: %w", err)
		}
		at := int64(id) * int64(size)
		// Most free pages of a large file are zero already, from the last time. To read one is much cheaper.
		if _, err := s.file.ReadAt(page, at); err == nil && bytes.Equal(page, zeros) {
			continue
		}
		if _, err := s.file.WriteAt(zeros, at); err != nil {
			return err
		}
	}
	return s.file.Sync()
}
