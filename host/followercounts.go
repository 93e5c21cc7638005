package host

import (
	"context"
	"github.com/memhost/memhost/host/report"
	"slices"
)

// FollowerCounts returns the counts of all memories that follow. Two namespaces of one provider share an entry.
//
// Errors: those of the store.
func (s *Slot) FollowerCounts(ctx context.Context) (list []report.FollowerCounts, err error) {
	for _, f := range s.followers.list() {
		record := f.work.Record()
		one, err := f.work.Counts(ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(list, func(c report.FollowerCounts) bool {
			return c.Role == record.Role && c.Provider == record.Provider
		})
		if i < 0 {
			i, list = len(list), append(list, report.FollowerCounts{Role: record.Role, Provider: record.Provider})
		}
		sum := &list[i]
		sum.Queue += one.Queue
		sum.Lag = max(sum.Lag, one.Lag)
		sum.Delivered += one.Delivered
		sum.Failed += one.Failed
	}
	return list, nil
}
