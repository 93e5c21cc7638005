package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/backup"
)

// backupTries limits how often a backup starts over because the archive merged or removed a file that its snapshot
// lists.
const backupTries = 5

// Backup writes a consistent snapshot of the data folder to w while the slot serves: the state, the archive, the events
// that were brought for memories being filled, and those files named in also that exist. Unpacked into an empty folder,
// it is a data folder. While Backup runs, the disk holds a second copy of the state; archive files are hard links if
// the file system supports them.
//
// Errors: unsupported if the store is not a file of this process (a database has its own backups); unavailable, reason
// backup_running, while another backup is being made; unavailable for what cannot be read. An error of w is in the
// chain.
func (h *Host) Backup(ctx context.Context, w io.Writer, also ...string) error {
	store, ok := h.store.(state.Snapshotter)
	if !ok {
		return abi.NewError(abi.CodeUnsupported, "the slot is kept in a database, which a backup of the data folder does "+
			"not have").WithReason("backup").WithHint("use the database's own way, such as pg_dump of the slot's schema")
	}
	if !h.backingUp.TryLock() {
		return abi.NewError(abi.CodeUnavailable, "a backup is being made already").WithReason("backup_running").
			WithHint("try again when it has ended")
	}
	defer h.backingUp.Unlock()
	at := h.now()
	dir, names, err := h.snapshot(ctx, store, also)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := backup.Write(contextWriter{ctx, w}, dir, names, at); err != nil {
		return backupError(err)
	}
	return nil
}

// snapshot creates a folder with the files of a backup, and returns their names.
func (h *Host) snapshot(ctx context.Context, store state.Snapshotter, also []string) (dir string, names []string,
	err error) {
	for range backupTries {
		if dir, err = store.Snapshot(ctx); err != nil {
			return "", nil, stateError(err)
		}
		if names, err = h.addFiles(ctx, dir, also); err == nil {
			return dir, names, nil
		}
		_ = os.RemoveAll(dir)
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		// A segment of the snapshot was merged into another one, or its retention ended.
	}
	return "", nil, backupError(err)
}

// addFiles adds the files that belong to a snapshot to its folder, and returns the names of all files in it.
func (h *Host) addFiles(ctx context.Context, dir string, also []string) (names []string, err error) {
	segments, err := archiveFiles(ctx, dir)
	if err != nil {
		return nil, err
	}
	names = []string{state.DataFile}
	for _, name := range segments {
		if err := addFile(h.options.DataDir, dir, name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	for _, name := range also {
		switch err := addFile(h.options.DataDir, dir, name); {
		case err == nil:
			names = append(names, name)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return names, nil
}

// archiveFiles returns the names of the archive files that a snapshot lists. It checks the snapshot's structure.
func archiveFiles(ctx context.Context, dir string) (names []string, err error) {
	snapshot, err := state.Open(dir, state.Options{Durability: state.DurabilityProcess})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	for _, folder := range []string{archiveFolder, givenFolder} {
		list, err := archive.SegmentsOf(ctx, snapshot, folder == givenFolder)
		if err != nil {
			return nil, err
		}
		for _, info := range list {
			names = append(names, filepath.Join(folder, info.Name()))
		}
	}
	return names, nil
}

// addFile links a file of one folder into another, or copies it if linking fails. Such files are never changed in
// place, so a link is as good as a copy.
func addFile(from, to, name string) error {
	source, target := filepath.Join(from, name), filepath.Join(to, name)
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	if os.Link(source, target) == nil {
		return nil
	}
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func backupError(err error) error {
	var e *abi.Error
	if errors.As(err, &e) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return abi.WrapError(abi.CodeUnavailable, "a file of the archive is missing: "+err.Error(), err).
			WithReason("archive").WithHint("memhost archive verify says what is damaged")
	}
	return abi.WrapError(abi.CodeUnavailable, fmt.Sprintf("the backup failed: %s", err), err).WithReason("backup")
}

// contextWriter fails writes once its context is done.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (c contextWriter) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.w.Write(p)
}
