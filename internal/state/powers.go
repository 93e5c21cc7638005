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

// Sizer is a Store that knows how much room it takes.
type Sizer interface {
	// Size is the size of the store's files or tables, in bytes.
	Size(ctx context.Context) (int64, error)
}

// Connected is a Store in a database that several hosts may share.
type Connected interface {
	// Connections tells how many connections this host has and may have.
	Connections() Connections
}

// Connections are the connections of a host to the database.
type Connections struct {
	// Used are open now, Most are opened at most.
	Used, Most int
	// Allowed is how many the server allows this user over all hosts; behind a pooler, the pooler's own limits count, too.
	Allowed int
	// Pooler says that a connection pooler is between this host and the server.
	Pooler bool
}

var (
	_ Snapshotter = (*Bolt)(nil)
	_ Sizer       = (*Bolt)(nil)
)

// Size is that of the data file.
func (s *Bolt) Size(context.Context) (int64, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

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
