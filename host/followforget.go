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
	for _, f := range s.followerList() {
		p := f.provider()
		if p == nil || len(r.NativeIDs) > 0 {
			continue
		}
		within, cancel := context.WithTimeout(ctx, forgetAtFollower)
		one, err := f.inner.Forget(within, r)
		cancel()
		if err != nil {
			one = &abi.ForgetReceipt{Status: abi.ForgetPartial, DerivedMayRemain: []string{
				"all of it: " + abi.AsError(err).Message + "; forget it again"}}
		}
		for kind, ids := range one.Removed {
			if kind != NativeArchived {
				receipt.Removed[fmt.Sprintf("%s (%s)", kind, p.name)] = ids
			}
		}
		for _, what := range one.DerivedMayRemain {
			remains(receipt, "at %s, which follows: %s", p.name, what)
		}
		switch {
		case one.Status == abi.ForgetDone || receipt.Status == abi.ForgetPartial:
		case one.Status == abi.ForgetInProgress && receipt.Status != abi.ForgetUnsupported:
			receipt.Status = abi.ForgetInProgress
		default:
			receipt.Status = abi.ForgetPartial
		}
	}
}
