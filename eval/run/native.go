package run

import (
	"cmp"
	"slices"
	"sync"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/host"
)

// readyCalls counts the native calls with which a cell's memory becomes ready: readiness checks, and the provider's
// work in the background, in which some memories call a model. It is safe for concurrent use.
type readyCalls struct {
	mu     sync.Mutex
	routes map[string]*journal.RouteCalls
}

// observe counts the calls of one operation, unless it is of another kind.
func (r *readyCalls) observe(o host.Observation) {
	if !slices.Contains([]string{abi.OpReadiness, abi.OpWaitUntilReady, abi.OpFindEvent}, o.Operation) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range o.IO {
		call := &o.IO[i]
		sum := r.routes[call.Route]
		if sum == nil {
			sum = &journal.RouteCalls{Route: call.Route}
			if r.routes == nil {
				r.routes = map[string]*journal.RouteCalls{}
			}
			r.routes[call.Route] = sum
		}
		sum.Calls++
		sum.Retries += call.Retries
		sum.BytesOut += call.BytesOut
		sum.BytesIn += call.BytesIn
	}
}

// take returns what was counted since the last call, by route.
func (r *readyCalls) take() []journal.RouteCalls {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []journal.RouteCalls
	for _, sum := range r.routes {
		list = append(list, *sum)
	}
	r.routes = nil
	slices.SortFunc(list, func(a, b journal.RouteCalls) int { return cmp.Compare(a.Route, b.Route) })
	return list
}
