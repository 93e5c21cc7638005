package state

import (
	"context"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// Snapshotter is a Store that can copy itself while it is used.
type Snapshotter interface {
	// Snapshot makes a folder whose data file has what the store held at one moment, and returns the folder. The caller
	// removes it. It lies in the store's own folder, and the next Open removes it if the process ends before.
	Snapshot(ctx context.Context) (dir string, err error)
}

var _ Snapshotter = (*Bolt)(nil)

// Snapshot copies the data file. It needs as much room as the data file has.
func (s *Bolt) Snapshot(ctx context.Context) (dir string, err error) {
	err = s.view(ctx, "snapshot", func(tx *bbolt.Tx) error {
		var err error
		if dir, err = os.MkdirTemp(filepath.Dir(s.path), DataFile+unfinished); err != nil {
			return err
		}
		return copyTo(tx, filepath.Join(dir, DataFile))
	})
	if err != nil && dir != "" {
		_ = os.RemoveAll(dir)
	}
	return dir, err
}
