package state

import (
	"context"
	"fmt"

	"go.etcd.io/bbolt"
)

var _ Scrubber = (*Bolt)(nil)

// Scrub overwrites with zeros what the data file holds in pages that are free: what was deleted or replaced is not in
// the file any more. The file keeps its size. Readers and writers wait meanwhile: its cost is that of writing the free
// pages, and of a sync before and after.
//
// A crash in the middle harms nothing: what is live was synced before, and is not touched. Copies that the file system
// or the disk makes by itself are out of reach.
//
// Errors: ErrUnavailable where the file cannot be written, ErrClosed, or the context's own; then a part may be left.
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
	tx, err := s.begin(true) // no writer takes one
	if err != nil {
		return s.fail("scrub", err)
	}
	err = guard(func() error { return s.overwriteFree(ctx, tx) })
	_ = tx.Rollback() // it changed nothing
	return s.fail("scrub", err)
}

// Outside implements Scrubber: the file is overwritten.
func (s *Bolt) Outside() []string { return nil }

// overwriteFree is Scrub inside its transaction.
func (s *Bolt) overwriteFree(ctx context.Context, tx *bbolt.Tx) error {
	// The newest meta page has to be on disk: the one before it stands for pages that are free now.
	if err := s.file.Sync(); err != nil {
		return err
	}
	size := s.db.Info().PageSize
	zeros := make([]byte, size)
	for id := 0; ; id++ {
		page, err := tx.Page(id)
		if err != nil {
			return err
		}
		if page == nil {
			return s.file.Sync()
		}
		if page.Type != "free" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("state: scrub: %w", err)
		}
		if _, err := s.file.WriteAt(zeros, int64(id)*int64(size)); err != nil {
			return err
		}
	}
}
