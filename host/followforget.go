package host

import (
	"context"
	"fmt"
	"time"

	"github.com/memhost/memhost/abi"
)

// forgetAtFollower bounds how long one follower may take to forget.
const forgetAtFollower = 30 * time.Second

// follows reports whether a scope is one of a follower's.
func (s *Slot) follows(r *scopeRecord) bool {
	for _, f := range s.followerList() {
		if p := f.provider(); p != nil && p.owns(r) {
			return true
		}
	}
	return false
}

// forgetAtFollowers lets every follower forget what the serving provider has forgotten. What remains there is in the
// receipt. Native ids are the serving provider's own.
func (s *Slot) forgetAtFollowers(ctx context.Context, r *abi.ForgetRequest, receipt *abi.ForgetReceipt) {
	partial := func(name, format string, about ...any) {
		remains(receipt, "at "+name+", which follows: "+format, about...)
		if receipt.Status == abi.ForgetDone {
			receipt.Status = abi.ForgetPartial
		}
	}
	for _, f := range s.followerList() {
		p := f.provider()
		if p == nil || len(r.NativeIDs) > 0 {
			continue
		}
		within, cancel := context.WithTimeout(ctx, forgetAtFollower)
		one, err := f.inner.Forget(within, r)
		cancel()
		if err != nil {
			partial(p.name, "all of it: %s; forget it again", abi.AsError(err).Message)
			continue
		}
		for kind, ids := range one.Removed {
			if kind != NativeArchived {
				receipt.Removed[fmt.Sprintf("%s (%s)", kind, p.name)] = ids
			}
		}
		for _, what := range one.DerivedMayRemain {
			partial(p.name, "%s", what)
		}
	}
}
