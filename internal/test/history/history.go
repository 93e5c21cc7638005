// Package history checks that what the clients of a slot asked and got can have happened one after another: that their
// history is linearizable. Tests record each operation with its start and end by one clock; Check asks porcupine for an
// order that fits them and the model of one scope.
//
//	r := history.NewRecorder()
//	op := history.Op{Kind: history.Retrieve, Scope: "a", Call: r.Now()}
//	... ask the slot ...
//	op.Return, op.Events = r.Now(), []string{"e1", "e2"}
//	r.Add(op)
//	report, err := history.Check(r.Ops(), time.Minute)
//
// An operation whose outcome is not known stays open: it may have happened at any time after its call (Op.Open).
package history

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kind is what an operation is.
type Kind int

// The kinds of operations, and the members of Op that each has.
const (
	// Record records an event: Scope, Event, Outcome, and after Fresh also Provider and Generation.
	Record Kind = iota
	// Post is a part of an event that came to the backend: Scope, Event, Part, Late.
	Post
	// Retrieve read a scope: Events, Provider, Generation. One that failed is left out.
	Retrieve
	// SetMode made all scopes read-only or writable: ReadOnly, NotReady.
	SetMode
	// Swap exchanged the provider of all scopes: Provider.
	Swap
	// Reset began a new generation of a scope: Generation.
	Reset
)

// Outcome is the answer to Record.
type Outcome int

const (
	// Unknown is an error, or a receipt that says uncertain. The event may have been recorded, or may be later.
	Unknown Outcome = iota
	// Fresh says that the event was recorded by this call.
	Fresh
	// Repeated says that the event is recorded, by an earlier call.
	Repeated
	// Skipped says that the slot is read-only.
	Skipped
)

// Op is one operation of one client.
type Op struct {
	Kind   Kind
	Client int
	// Scope is empty for what concerns all scopes.
	Scope string
	// Call and Return are ns since the recorder was made. Open: the outcome is unknown. The call may
	// have taken effect until Return; Record and Reset may take effect at any time after it, too.
	Call, Return int64
	Open         bool

	Event string
	// Local: the event leaves nothing at the backend. Others leave two parts there.
	Local      bool
	Part       int // 0 or 1
	Outcome    Outcome
	Events     []string // in the order in which they were recorded
	Provider   int      // counts up with each swap; 0 served first
	Generation int64    // of the scope, from 1
	ReadOnly   bool
	// NotReady are scopes to which a write may still come though SetMode has answered; nil for none. All says that every
	// scope is one.
	NotReady []string
	All      bool
	// Late marks a part that was named as a late write: no model binds it.
	Late bool
}

// Recorder collects operations. It is safe for concurrent use.
type Recorder struct {
	began time.Time
	mu    sync.Mutex
	ops   []Op
}

// NewRecorder starts the clock.
func NewRecorder() *Recorder { return &Recorder{began: time.Now()} }

// Now is the time for Op.Call and Return.
func (r *Recorder) Now() int64 { return int64(time.Since(r.began)) }

// Add adds an operation that has ended.
func (r *Recorder) Add(op Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, op)
}

// Ops are the operations so far.
func (r *Recorder) Ops() []Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ops)
}

// Report is what Check found. Each scope is in one of the counts.
type Report struct {
	Ops, Scopes, Linearizable, Illegal, Undecided int
}

func (r Report) String() string {
	return fmt.Sprintf("%d operations in %d scopes: %d linearizable, %d not, %d undecided", r.Ops, r.Scopes,
		r.Linearizable, r.Illegal, r.Undecided)
}

// Check looks for a legal order of each scope's operations, including the operations that apply to all scopes.
//
// Errors: the first scope without one, with the operations around the place that fits no order; and a scope that is
// undecided after the time-out.
func Check(ops []Op, timeout time.Duration) (Report, error) {
	scopes := map[string][]Op{}
	var all []Op
	for _, op := range ops {
		if op.Scope == "" {
			all = append(all, op)
		} else {
			scopes[op.Scope] = append(scopes[op.Scope], op)
		}
	}
	report := Report{Ops: len(ops), Scopes: len(scopes)}
	names := make([]string, 0, len(scopes))
	for name := range scopes {
		names = append(names, name)
	}
	slices.Sort(names)
	type result struct {
		decided porcupine.CheckResult
		err     error
	}
	results := make([]result, len(names))
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, name := range names {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			results[i].decided, results[i].err = checkScope(name, slices.Concat(all, scopes[name]), timeout)
		})
	}
	wg.Wait()
	var first error
	for _, r := range results {
		switch r.decided {
		case porcupine.Ok:
			report.Linearizable++
		case porcupine.Illegal:
			report.Illegal++
		default:
			report.Undecided++
		}
		if first == nil {
			first = r.err
		}
	}
	return report, first
}

func checkScope(scope string, ops []Op, timeout time.Duration) (porcupine.CheckResult, error) {
	m := &model{scope: scope, index: map[string]byte{}}
	history, err := m.history(ops)
	if err != nil {
		return porcupine.Unknown, err
	}
	result, info := porcupine.CheckOperationsVerbose(m.porcupine(), history, timeout)
	switch result {
	case porcupine.Ok:
		return result, nil
	case porcupine.Illegal:
		return result, fmt.Errorf("scope %s: no order of its operations fits:\n%s", scope, m.stuck(history, info))
	}
	return result, fmt.Errorf("scope %s: undecided after %s, with %d operations", scope, timeout, len(history))
}

// stuck describes where the search for a legal order fails: the last operations of the longest legal order, and the
// first ones that cannot follow it.
func (m *model) stuck(history []porcupine.Operation, info porcupine.LinearizationInfo) string {
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	state := m.start()
	in := map[*step]bool{}
	var b strings.Builder
	for i, op := range longest {
		s := op.Input.(*step)
		in[s] = true
		_, state = m.apply(state, s)
		if i >= len(longest)-8 {
			fmt.Fprintf(&b, "  %s\n", s)
		}
	}
	fmt.Fprintf(&b, "  then %s\n", m.describe(state))
	missing := slices.DeleteFunc(slices.Clone(history), func(op porcupine.Operation) bool { return in[op.Input.(*step)] })
	slices.SortFunc(missing, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	for _, op := range missing[:min(len(missing), 4)] {
		fmt.Fprintf(&b, "  no place for %s\n", op.Input.(*step))
	}
	return b.String()
}
