package host

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/guest"
	"github.com/memhost/memhost/host/internal/opstate"
	"github.com/memhost/memhost/host/internal/wall"
	"github.com/memhost/memhost/host/internal/writelock"
)

// Read-only is enforced here; package wall holds the modes. A write needs a permit before it enters the guest (admit),
// and keeps it until it ends; without one, the host answers the write itself. In all other operations, the guest cannot
// write state, and needs a permit for each native call that is not a read (guard).

// permission is what an operation may change.
type permission struct {
	// permit is the permit of a write; nil for an operation that is not a write, or was not admitted.
	permit *wall.Permit
	// readOnly is passed to the guest: it may send only reads to the backend, and write no state.
	readOnly bool
	guarded  readOnlyPowers
}

// wallKey is the scope's key at the wall, or the slot's key for nil.
func (s *scopeState) wallKey() wall.Scope {
	if s == nil {
		return wall.Slot
	}
	return wall.Scope(s.key)
}

// admit requests the permit of a write in a scope. It returns nil if slot, scope or session is read-only.
//
// Errors: those of the store.
func (o *operation) admit(ctx context.Context, sc *scopeState) (permit *wall.Permit, err error) {
	if !o.readOnly {
		o.permit, err = o.slot.admit(ctx, o.provider, sc)
	}
	return o.permit, err
}

// admit requests the permit of a write. If this host believes that the mode is read-only, it checks whether another
// host has changed it. A change to read-only is noticed when the write takes its lock.
func (s *Slot) admit(ctx context.Context, p *Provider, sc *scopeState) (*wall.Permit, error) {
	if permit := s.wall.Admit(sc.wallKey()); permit != nil {
		return permit, nil
	}
	if readOnly, err := s.readMode(ctx, p, sc); err != nil || readOnly {
		return nil, err
	}
	return s.wall.Admit(sc.wallKey()), nil
}

// refusal is the error of an operation that read-only prevents, in the slot or in one scope.
func (s *Slot) refusal(words string) *abi.Error {
	if s.wall.ReadOnly(wall.Slot) {
		return abi.NewError(abi.CodeReadOnly, "the slot is read-only: "+words).
			WithHint("set the mode first: memhost mode write")
	}
	return abi.NewError(abi.CodeReadOnly, "the scope is read-only: "+words).
		WithHint("set its mode first: memhost mode write, with the scope's --run and --user")
}

// forSession makes the operation read-only if the configuration makes its session read-only.
func (o *operation) forSession(session string) { o.readOnly = o.provider.testSession(session) }

// sessionPattern compiles patterns with * and ? into one regular expression; nil if there are none.
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

// guard gives the guest its powers for the next call: all powers if the write has a permit, else those of a reader.
func (o *operation) guard() {
	if o.permit != nil {
		o.Powers = o
		return
	}
	if o.slot == nil || o.slot.wall.ReadOnly(o.scope.wallKey()) {
		o.readOnly = true // there is no slot while an instance starts
	}
	o.guarded = readOnlyPowers{Powers: o, operation: o}
	if o.state != nil {
		o.guarded.moment.Begin(o.state, o.slot.host.recent)
	}
	o.Powers = &o.guarded
}

// readOnlyPowers rejects state writes, and requires a permit for each native call that is not a read. It also ensures
// that all state reads of the operation see one commit.
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

// willRead is called before each state read. An operation without a scope has no state, so the read itself fails.
func (r *readOnlyPowers) willRead(ctx context.Context) error {
	if r.operation.state == nil {
		return nil
	}
	return stateError(r.moment.WillRead(ctx))
}

// oneMoment checks that all state reads so far saw the same commit.
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
	release, err := r.admitCall(ctx, request.Route, abi.ProtocolHTTP)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	if err := r.oneMoment(ctx); err != nil { // never send a call that is based on two commits; the operation is repeated
		return nil, nil, err
	}
	return r.Powers.HTTP(ctx, request, body)
}

// Bolt implements guest.Powers.
func (r *readOnlyPowers) Bolt(ctx context.Context, request *abi.BoltRequest) (*abi.BoltResult, []byte, error) {
	release, err := r.admitCall(ctx, request.Route, abi.ProtocolBolt)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	if err := r.oneMoment(ctx); err != nil { // never send a call that is based on two commits; the operation is repeated
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

// admitCall allows a native call to leave. A call that is not a read needs its own permit, which it keeps until
// release. If hosts share the store, it also needs the scope's lock for calls, so that raising the wall at any host
// waits for the call.
//
// Errors: read_only; denied in operations that only ever read. Any other problem with the route is left to the network
// to report.
func (r *readOnlyPowers) admitCall(ctx context.Context, name, protocol string) (release func(), err error) {
	o := r.operation
	route, err := o.provider.network.Route(name, protocol)
	if err != nil || route.Class == abi.ClassRead {
		return func() {}, nil
	}
	switch o.Op {
	case abi.InitExport:
		return nil, abi.NewError(abi.CodeDenied,
			fmt.Sprintf("route %s is of class %s, and an instance that starts may only read", name, route.Class))
	case abi.OpFormatContext:
		return nil, abi.NewError(abi.CodeDenied,
			fmt.Sprintf("route %s is of class %s, and format_context may only read", name, route.Class))
	}
	refused := abi.NewError(abi.CodeReadOnly, fmt.Sprintf("route %s is of class %s, and the slot is read-only", name,
		route.Class))
	if o.readOnly {
		return nil, refused
	}
	permit := o.slot.wall.Admit(o.scope.wallKey())
	if permit == nil {
		return nil, refused
	}
	unlock, err := o.lockCall(ctx)
	if err != nil {
		permit.Release()
		if errors.Is(err, writelock.ErrBecameReadOnly) {
			return nil, refused
		}
		return nil, err
	}
	return func() {
		unlock()
		permit.Release()
	}, nil
}
