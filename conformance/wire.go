package conformance

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// wire is between the hosts and the backend: it keeps every native call with its answer, and applies the fault that is
// set.
type wire struct {
	mu    sync.Mutex
	log   []*exchange
	fault host.Interceptor
	// unanswered counts the calls that were sent to the backend and got no answer.
	unanswered int
}

// exchange is one native call as the host made it.
type exchange struct {
	call   host.NativeCall
	answer host.NativeAnswer
	err    error
	// reached counts how often the call went on to the backend, answered how often that answered as if it was done.
	reached, answered int
}

type next = func(context.Context) (host.NativeAnswer, error)

// intercept implements host.Interceptor.
func (w *wire) intercept(ctx context.Context, call host.NativeCall, send next) (host.NativeAnswer, error) {
	x := &exchange{call: call}
	w.mu.Lock()
	w.log = append(w.log, x)
	fault := w.fault
	w.mu.Unlock()
	counted := func(ctx context.Context) (host.NativeAnswer, error) {
		w.mu.Lock()
		x.reached++
		w.mu.Unlock()
		answer, err := send(ctx)
		w.mu.Lock()
		if err == nil && answer.Status < 300 {
			x.answered++
		}
		if failure := new(host.NativeFailure); err != nil && ctx.Err() == nil && !errors.As(err, &failure) {
			w.unanswered++
		}
		w.mu.Unlock()
		return answer, err
	}
	var answer host.NativeAnswer
	var err error
	if fault != nil {
		answer, err = fault(ctx, call, counted)
	} else {
		answer, err = counted(ctx)
	}
	w.mu.Lock()
	x.answer, x.err = answer, err
	w.mu.Unlock()
	return answer, err
}

// mark is the present end of the log, since what was logged after it.
func (w *wire) mark() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.log)
}

// misses returns how many calls have got no answer so far.
func (w *wire) misses() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unanswered
}

func (w *wire) since(mark int) []exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]exchange, 0, len(w.log)-mark)
	for _, x := range w.log[mark:] {
		list = append(list, *x)
	}
	return list
}

// during runs f while a fault handles native calls.
func (w *wire) during(fault host.Interceptor, f func()) {
	w.set(fault)
	defer w.set(nil)
	f()
}

func (w *wire) set(fault host.Interceptor) {
	w.mu.Lock()
	w.fault = fault
	w.mu.Unlock()
}

// cost is what reached the backend after a mark.
func (w *wire) cost(mark int) Cost {
	c := Cost{}
	for _, x := range w.since(mark) {
		if x.reached > 0 {
			c.add(Cost{NativeCalls: int64(x.reached),
				ByRoute: map[string]int64{string(x.call.Class) + " " + x.call.Route: int64(x.reached)}})
		}
	}
	return c
}

// changes are the calls other than reads.
func changes(list []exchange) []exchange {
	var some []exchange
	for _, x := range list {
		if x.call.Class != abi.ClassRead {
			some = append(some, x)
		}
	}
	return some
}

// carries reports whether a call holds a text, without regard to case.
func (x *exchange) carries(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(strings.ToLower(string(x.call.Body)), text) ||
		strings.Contains(strings.ToLower(x.call.URL), text)
}

// writesOf counts how often the backend did calls, other than reads, that carry a name.
func writesOf(list []exchange, name string) int {
	n := 0
	for _, x := range changes(list) {
		if x.carries(name) {
			n += x.answered
		}
	}
	return n
}

// routesOf names the calls for people.
func routesOf(list []exchange) string {
	var names []string
	for _, x := range list {
		names = append(names, string(x.call.Class)+" "+x.call.Route)
	}
	return strings.Join(names, ", ")
}
