package state

import (
	"bytes"
	"context"

	"go.etcd.io/bbolt"
)

// Enumerator is a Store that can list all its content.
type Enumerator interface {
	Store
	// Tables lists the tables that have records, Spaces the spaces that have any content, Logs a space's logs; each in
	// ascending byte order.
	Tables(ctx context.Context) ([]Table, error)
	Spaces(ctx context.Context) ([]Space, error)
	Logs(ctx context.Context, space Space) ([]string, error)
}

var _ Enumerator = (*Bolt)(nil)

// Tables implements Enumerator.
func (s *Bolt) Tables(ctx context.Context) (tables []Table, err error) {
	err = s.view(ctx, "tables", func(tx *bbolt.Tx) error {
		all := tx.Bucket([]byte(bucketTables))
		return all.ForEachBucket(func(name []byte) error {
			if k, _ := all.Bucket(name).Cursor().First(); k != nil {
				tables = append(tables, Table(name))
			}
			return nil
		})
	})
	return tables, err
}

// Spaces implements Enumerator.
func (s *Bolt) Spaces(ctx context.Context) (spaces []Space, err error) {
	err = s.view(ctx, "spaces", func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucketUsage)).ForEach(func(k, _ []byte) error {
			spaces = append(spaces, Space(k))
			return nil
		})
	})
	return spaces, err
}

// Logs implements Enumerator.
func (s *Bolt) Logs(ctx context.Context, space Space) (logs []string, err error) {
	err = s.view(ctx, "logs", func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(bucketNames)).Cursor()
		for k, _ := c.Seek(space[:]); bytes.HasPrefix(k, space[:]); k, _ = c.Next() {
			logs = append(logs, string(k[spaceLen:]))
		}
		return nil
	})
	return logs, err
}

// Walk visits the whole content of a store, except the tables for which leftOut returns true, as the operations that
// would recreate it. The order only depends on the content. The store must not be written to while it runs.
//
// Errors: those of the store, and that of visit.
func Walk(ctx context.Context, s Enumerator, leftOut func(Table) bool, visit func(Op) error) error {
	tables, err := s.Tables(ctx)
	if err != nil {
		return err
	}
	for _, table := range tables {
		if leftOut(table) {
			continue
		}
		err := EachRecord(ctx, s, table, nil, func(r KeyValue) error {
			return visit(Op{Kind: OpPutRecord, Table: table, Name: string(r.Key), Value: r.Value})
		})
		if err != nil {
			return err
		}
	}
	spaces, err := s.Spaces(ctx)
	if err != nil {
		return err
	}
	for _, space := range spaces {
		if err := walkKeys(ctx, s, space, visit); err != nil {
			return err
		}
		if err := walkLogs(ctx, s, space, visit); err != nil {
			return err
		}
	}
	return nil
}

// walkPage is how many bytes Walk reads at once, unless a single value is larger.
const walkPage = 4 << 20

func walkKeys(ctx context.Context, s Enumerator, space Space, visit func(Op) error) error {
	for q := (ListQuery{Values: true, MaxBytes: walkPage}); ; {
		page, err := s.List(ctx, space, q)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			q.After = item.Key
			if err := visit(Op{Kind: OpPut, Space: space, Name: item.Key, Value: item.Data}); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
	}
}

func walkLogs(ctx context.Context, s Enumerator, space Space, visit func(Op) error) error {
	logs, err := s.Logs(ctx, space)
	if err != nil {
		return err
	}
	for _, log := range logs {
		for q := (LogQuery{Log: log, From: 1, MaxBytes: walkPage}); ; {
			page, err := s.ReadLog(ctx, space, q)
			if err != nil {
				return err
			}
			for _, entry := range page.Items {
				q.From = entry.Seq + 1
				if err := visit(Op{Kind: OpAppend, Space: space, Name: log, Value: entry.Data}); err != nil {
					return err
				}
			}
			if !page.More {
				break
			}
		}
	}
	return nil
}
