package host

import (
	"context"
	"slices"
	"time"
)

// FollowerCounts are what metrics show of the memories of one provider that follow a slot in one role.
type FollowerCounts struct {
	// Role is abi.RoleShadow or abi.RoleBackfill.
	Role, Provider string
	// Queue is how many events they have not dealt with, those included that wait because their scope is read-only. Lag is
	// how long ago the oldest of these was recorded.
	Queue int64
	Lag   time.Duration
	// Delivered counts the events that they got since the process began to fill them, Failed the deliveries of an event
	// that were refused, did not reach them, or had an outcome that was not known.
	Delivered, Failed int64
}

// FollowerCounts reads the counts of all memories that follow. Two of one provider, in two namespaces, are one entry.
//
// Errors: those of the store.
func (s *Slot) FollowerCounts(ctx context.Context) (list []FollowerCounts, err error) {
	for _, f := range s.followers.list() {
		record := f.work.Record()
		one, err := f.work.Counts(ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(list, func(c FollowerCounts) bool {
			return c.Role == record.Role && c.Provider == record.Provider
		})
		if i < 0 {
			i, list = len(list), append(list, FollowerCounts{Role: record.Role, Provider: record.Provider})
		}
		sum := &list[i]
		sum.Queue += one.Queue
		sum.Lag = max(sum.Lag, one.Lag)
		sum.Delivered += one.Delivered
		sum.Failed += one.Failed
	}
	return list, nil
}
