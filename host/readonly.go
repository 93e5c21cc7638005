package host

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/guest"
	"github.com/memhost/memhost/host/internal/opstate"
)

// Read-only is enforced here, in two steps. A writing operation must be admitted before it enters the guest (admit);
// what is not admitted is answered by the host. A guest that is entered gets powers that refuse what the operation may
// not do (permit).

// permission is what an operation may change.
type permission struct {
	// admitted: the mode let this write in. It goes on to its end even if the mode changes meanwhile.
	admitted bool
	// readOnly: only reads are sent to the backend, and no state is written.
	readOnly bool
	guarded  readOnlyPowers
}

// readOnlyMode is the read-only mode of a slot, and the writes that are under way. The host keeps it: no guest can
// change or bypass it.
type readOnlyMode struct {
	mu   sync.RWMutex
	slot modeRecord
	// scopes are those that are read-only one by one.
	scopes map[scopeKey]modeRecord
	// inFlight counts the writes under way, of each scope that has any. ended is closed and made new when one ends.
	inFlight map[scopeKey]int64
	ended    chan struct{}
	// setting is held by the one SetMode that runs.
	setting sync.Mutex
}

// modeRecord is what the store keeps of a mode, so that it survives a restart.
type modeRecord struct {
	ReadOnly bool   `json:"read_only"`
	Reason   string `json:"reason"`
	Since    string `json:"since"`
}

// isReadOnly reports whether a scope may not be written now. Nil asks for the slot as a whole.
func (m *readOnlyMode) isReadOnly(sc *scopeState) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.slot.ReadOnly || sc != nil && m.scopes[sc.key].ReadOnly
}

// admit lets a write of a scope in, unless slot or scope are read-only. A write that began goes on when the mode
// changes: done follows.
func (m *readOnlyMode) admit(sc *scopeState) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.slot.ReadOnly || m.scopes[sc.key].ReadOnly {
		return false
	}
	m.inFlight[sc.key]++
	return true
}

// done ends what admit began.
func (m *readOnlyMode) done(sc *scopeState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inFlight[sc.key]--; m.inFlight[sc.key] == 0 {
		delete(m.inFlight, sc.key)
	}
	close(m.ended)
	m.ended = make(chan struct{})
}

// admit lets the operation write in a scope, unless slot, scope or session are read-only. done follows where it did.
//
// Errors: those of the store.
func (o *operation) admit(ctx context.Context, sc *scopeState) (admitted bool, err error) {
	if !o.readOnly {
		o.admitted, err = o.slot.admit(ctx, o.provider, sc)
	}
	return o.admitted, err
}

// admit lets a write in. Where the mode, as far as this host knows, is read-only, it asks whether another one has
// changed it; the opposite is found out when the write takes its turn.
func (s *Slot) admit(ctx context.Context, p *Provider, sc *scopeState) (admitted bool, err error) {
	if s.mode.admit(sc) {
		return true, nil
	}
	if readOnly, err := s.look(ctx, p, sc); err != nil || readOnly {
		return false, err
	}
	return s.mode.admit(sc), nil
}

func (o *operation) done(sc *scopeState) { o.slot.mode.done(sc) }

// underWay counts the writes of a scope that have not ended, of all scopes for nil, and returns what is closed when one
// ends.
func (m *readOnlyMode) underWay(sc *scopeState) (int64, <-chan struct{}) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if sc != nil {
		return m.inFlight[sc.key], m.ended
	}
	var all int64
	for _, n := range m.inFlight {
		all += n
	}
	return all, m.ended
}

// refusal is the error of an operation that a read-only mode prevents: of the slot or of one scope.
func (m *readOnlyMode) refusal(words string) *abi.Error {
	if m.isReadOnly(nil) {
		return abi.NewError(abi.CodeReadOnly, "the slot is read-only: "+words).
			WithHint("set the mode first: memhost mode write")
	}
	return abi.NewError(abi.CodeReadOnly, "the scope is read-only: "+words).
		WithHint("set its mode first: memhost mode write, with the scope's --run and --user")
}

// forSession makes the operation read-only where the configuration makes the session so.
func (o *operation) forSession(session string) { o.readOnly = o.provider.testSession(session) }

// sessionPattern turns patterns with * and ? into one expression; nil when there are none.
func sessionPattern(patterns []string) *regexp.Regexp {
	if len(patterns) == 0 {
		return nil
	}
	alternatives := make([]string, len(patterns))
	for i, p := range patterns {
		alternatives[i] = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(p))
	}
	return regexp.MustCompile(`(?s)^(?:` + strings.Join(alternatives, "|") + `)$`)
}

// testSession reports whether the configuration makes a session read-only.
func (p *Provider) testSession(session string) bool {
	return p.testSessions != nil && p.testSessions.MatchString(session)
}

// writers are the operations whose guests may write state.
var writers = []string{abi.OpSetupScope, abi.OpRecordEvent, abi.OpRecordEvents, abi.OpResetScope, abi.OpWaitUntilReady,
	abi.OpApplyFeedback, abi.OpNativeMutation,
	abi.OpForget}

// permit gives the guest its powers for the next call: all for an operation that was admitted, else those of a reader.
func (o *operation) permit() {
	if o.admitted {
		o.Powers = o
		return
	}
	if o.slot == nil || o.slot.mode.isReadOnly(o.scope) {
		o.readOnly = true // no slot: an instance starts
	}
	o.guarded = readOnlyPowers{Powers: o, operation: o}
	if o.state != nil {
		o.guarded.moment.Begin(o.state)
	}
	o.Powers = &o.guarded
}

// readOnlyPowers lets a guest write no state, and while the operation is read-only make no native call that is not a
// read. It ensures that all state reads of the operation see one commit.
type readOnlyPowers struct {
	guest.Powers
	operation *operation
	moment    opstate.Moment
}

// StateGet implements guest.Powers.
func (r *readOnlyPowers) StateGet(ctx context.Context, key string) (value []byte, version int64, err error) {
	if err := r.willRead(ctx); err != nil {
		return nil, 0, err
	}
	return r.Powers.StateGet(ctx, key)
}

// StateList implements guest.Powers.
func (r *readOnlyPowers) StateList(ctx context.Context, q *abi.StateListRequest) (*abi.StateList, [][]byte, error) {
	if err := r.willRead(ctx); err != nil {
		return nil, nil, err
	}
	return r.Powers.StateList(ctx, q)
}

// StateRead implements guest.Powers.
func (r *readOnlyPowers) StateRead(ctx context.Context, q *abi.StateReadRequest) (*abi.StateEntries, [][]byte,
	error) {
	if err := r.willRead(ctx); err != nil {
		return nil, nil, err
	}
	return r.Powers.StateRead(ctx, q)
}

// willRead is called before each state read. An operation without a scope has no state: the read itself refuses.
func (r *readOnlyPowers) willRead(ctx context.Context) error {
	if r.operation.state == nil {
		return nil
	}
	return stateError(r.moment.WillRead(ctx))
}

// oneMoment checks that all state reads so far were of one commit.
//
// Errors: errStateMoved, and those of the store.
func (r *readOnlyPowers) oneMoment(ctx context.Context) error {
	moved, err := r.moment.Moved(ctx)
	if err != nil {
		return stateError(err)
	}
	if moved {
		return errStateMoved
	}
	return nil
}

// StatePut implements guest.Powers.
func (r *readOnlyPowers) StatePut(context.Context, string, []byte, int64) (int64, error) {
	return 0, r.refuseState()
}

// StateDelete implements guest.Powers.
func (r *readOnlyPowers) StateDelete(context.Context, string) (int64, error) {
	return 0, r.refuseState()
}

// StateAppend implements guest.Powers.
func (r *readOnlyPowers) StateAppend(context.Context, string, []byte) (int64, error) {
	return 0, r.refuseState()
}

// HTTP implements guest.Powers.
func (r *readOnlyPowers) HTTP(ctx context.Context, request *abi.HTTPRequest, body []byte) (*abi.HTTPResponse, []byte,
	error) {
	if err := r.refuseRoute(request.Route, abi.ProtocolHTTP); err != nil {
		return nil, nil, err
	}
	if err := r.oneMoment(ctx); err != nil { // no call leaves that rests on two commits; the operation is repeated
		return nil, nil, err
	}
	return r.Powers.HTTP(ctx, request, body)
}

// Bolt implements guest.Powers.
func (r *readOnlyPowers) Bolt(ctx context.Context, request *abi.BoltRequest) (*abi.BoltResult, []byte, error) {
	if err := r.refuseRoute(request.Route, abi.ProtocolBolt); err != nil {
		return nil, nil, err
	}
	if err := r.oneMoment(ctx); err != nil { // no call leaves that rests on two commits; the operation is repeated
		return nil, nil, err
	}
	return r.Powers.Bolt(ctx, request)
}

func (r *readOnlyPowers) refuseState() error {
	o := r.operation
	switch {
	case o.scope == nil:
		return o.stateAt("", "", 0)
	case slices.Contains(writers, o.Op):
		return abi.NewError(abi.CodeReadOnly, "the slot is read-only")
	}
	last := len(writers) - 1
	return abi.NewError(abi.CodeDenied,
		o.Op+" only reads: state may be written in "+strings.Join(writers[:last], ", ")+" and "+writers[last])
}

// refuseRoute refuses a route that is not a read. The network reports anything else that is wrong with it.
func (r *readOnlyPowers) refuseRoute(name, protocol string) error {
	if !r.operation.readOnly {
		return nil
	}
	route, err := r.operation.provider.network.Route(name, protocol)
	if err != nil || route.Class == abi.ClassRead {
		return nil
	}
	if r.operation.Op == abi.InitExport {
		return abi.NewError(abi.CodeDenied,
			fmt.Sprintf("route %s is of class %s, and an instance that starts may only read", name, route.Class))
	}
	return abi.NewError(abi.CodeReadOnly, fmt.Sprintf("route %s is of class %s, and the slot is read-only", name,
		route.Class))
}
