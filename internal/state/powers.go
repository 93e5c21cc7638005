package state

import (
	"context"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// Snapshotter is a Store that can copy itself while it is in use.
type Snapshotter interface {
	// Snapshot creates a folder whose data file has the store's content at one moment, and returns the folder. The
	// caller removes it. It is inside the store's own folder, and the next Open removes it if the process ends first.
	Snapshot(ctx context.Context) (dir string, err error)
}

// Sizer is a Store that knows its size.
type Sizer interface {
	// Size is the size of the store's files or tables, in bytes.
	Size(ctx context.Context) (int64, error)
}

// Connected is a Store in a database that several hosts may share.
type Connected interface {
	// Connections reports how many connections this host has and may have.
	Connections() Connections
}

// Connections are the connections of a host to the database.
type Connections struct {
	// Used is how many are open now, Max how many this host may open.
	Used, Max int
	// Allowed is how many the server allows this user over all hosts; behind a pooler, the pooler's own limits also
	// apply.
	Allowed int
	// Pooler means that a connection pooler is between this host and the server.
	Pooler bool
}

var (
	_ Snapshotter = (*Bolt)(nil)
	_ Sizer       = (*Bolt)(nil)
)

// Size is the size of the data file.
func (s *Bolt) Size(context.Context) (int64, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Snapshot copies the data file. It needs as much disk space as the data file.
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
