package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/egress"
)

// HTTP implements guest.Powers. Package egress has the network policy; this adds what the operation may do, and its
// account.
func (o *operation) HTTP(ctx context.Context, r *abi.HTTPRequest, body []byte) (*abi.HTTPResponse, []byte, error) {
	route, err := o.route(r.Route, abi.ProtocolHTTP)
	if err != nil {
		return nil, nil, err
	}
	native, err := route.HTTP(r, body)
	if err != nil {
		return nil, nil, err
	}
	if err := o.willSend(route.Class); err != nil {
		return nil, nil, err
	}
	answer, err := o.exchange(ctx, native)
	return native.HTTPAnswer(ctx, answer, err)
}

// Bolt implements guest.Powers.
func (o *operation) Bolt(ctx context.Context, r *abi.BoltRequest) (*abi.BoltResult, []byte, error) {
	route, err := o.route(r.Route, abi.ProtocolBolt)
	if err != nil {
		return nil, nil, err
	}
	native, err := route.Bolt(r, o.provider.deadline(o.Op))
	if err != nil {
		return nil, nil, err
	}
	if err := o.willSend(route.Class); err != nil {
		return nil, nil, err
	}
	answer, err := o.exchange(ctx, native)
	return native.BoltAnswer(ctx, answer, err)
}

// willSend is called before a native call leaves. A write does not leave once this host's session may have ended:
// another host may act for the scope then.
func (o *operation) willSend(class abi.Class) error {
	if err := o.WillSend(class); err != nil || class == abi.ClassRead {
		return err
	}
	return stateError(o.turn.Alive())
}

// route finds a route and checks that the operation may use its class.
func (o *operation) route(name, protocol string) (*egress.Route, error) {
	route, err := o.provider.network.Route(name, protocol)
	if err != nil {
		return nil, err
	}
	admins := []string{abi.OpSetupScope, abi.OpResetScope, abi.OpNativeMutation, abi.OpForget}
	if route.Class == abi.ClassAdmin && !slices.Contains(admins, o.Op) {
		return nil, abi.NewError(abi.CodeDenied,
			fmt.Sprintf("route %s is of class admin, which %s may not use", name, o.Op))
	}
	return route, nil
}

// exchange makes a native call and accounts for it.
func (o *operation) exchange(ctx context.Context, native *egress.Call) (egress.Answer, error) {
	began := time.Now()
	answer, err := o.provider.host.send(ctx, o, native)
	took := time.Since(began)
	status, effect := native.Outcome(answer, err)
	start := ms(began.Sub(o.ioFrom))
	o.DidSend(abi.IO{Route: native.Route.Name, Class: string(native.Route.Class), Status: status, StartMS: &start,
		MS:       ms(took),
		BytesOut: int64(len(native.Body)), BytesIn: int64(len(answer.Body)), Retries: native.Retries()}, took, effect)
	return answer, err
}

// sender makes a native call for an operation, which policy and mode have let through.
type sender func(ctx context.Context, o *operation, native *egress.Call) (egress.Answer, error)

// send is the plain sender.
func send(ctx context.Context, _ *operation, native *egress.Call) (egress.Answer, error) {
	return native.Send(ctx)
}
