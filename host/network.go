package host

import (
	"context"
	"fmt"
	"net/http"
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
	return o.lock.Alive()
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
	ctx, sent := o.watchSending(ctx, native.Route.Class, native.Route.Name)
	ctx, span := o.beginCall(ctx, native)
	began := time.Now()
	answer, err := o.provider.host.send(ctx, o, native)
	took := time.Since(began)
	sent()
	status, effect := native.Outcome(answer, err)
	start := ms(began.Sub(o.ioFrom))
	io := abi.IO{Route: native.Route.Name, Class: string(native.Route.Class), Status: status, StartMS: &start,
		MS:       ms(took),
		BytesOut: int64(len(native.Body)), BytesIn: int64(len(answer.Body)), Retries: native.Retries()}
	endCall(span, &io)
	o.DidSend(io, took, effect)
	return answer, err
}

// sender makes a native call for an operation, which policy and mode have let through.
type sender func(ctx context.Context, o *operation, native *egress.Call) (egress.Answer, error)

// sendPlain is the sender that adds nothing.
func sendPlain(ctx context.Context, _ *operation, native *egress.Call) (egress.Answer, error) {
	return native.Send(ctx)
}

// NativeCall is one call to a backend as it leaves the host: route table, mode and policy have let it through.
// Credentials are not in it, since the host adds headers behind it.
type NativeCall struct {
	// Provider and Operation say for whom and in which operation of the contract the guest makes the call.
	Provider, Operation string
	// Scope is whose memory is meant, the zero value for an operation without a scope; Generation counts its resets.
	Scope      abi.MemoryScope
	Generation int64
	// ReadOnly is true when only reads are let through in this operation.
	ReadOnly bool

	// Route and Class are of the manifest, Origin is the origin's name there, Protocol is http or bolt.
	Route, Origin, Protocol string
	Class                   abi.Class
	// Method and URL are of HTTP calls.
	Method, URL string
	// Statement is of Bolt calls.
	Statement string
	// Body is the body of an HTTP request, or the parameters of a Bolt call as JSON. It is not to be changed.
	Body []byte
}

// NativeAnswer is what came back.
type NativeAnswer struct {
	// Status and Header are of HTTP; a Bolt answer has 0 and nil.
	Status int
	Header http.Header
	// Body is the body of an HTTP answer, or the rows of a Bolt answer: one JSON array each, followed by a newline.
	Body []byte
	// Bolt is the head of a Bolt answer. An interceptor that answers by itself may leave it out: then the rows have no
	// columns' names.
	Bolt *abi.BoltResult
}

// NativeFailure is the error of a Bolt server that answered with a failure. Its field Code is the server's, such as
// Neo.ClientError.Statement.SyntaxError, Message its text.
type NativeFailure = egress.Failure

// Interceptor sees a native call and decides what the guest gets. next makes the call; it may be called not at all,
// once, again, or later than the interceptor returns, with a context of its own. An error means that no answer came:
// the guest gets timeout when ctx has ended, else unavailable. A NativeFailure is what a Bolt server answered.
//
// It is how a test injects faults that a real backend does not produce on demand, and how calls are recorded. It cannot
// widen what a guest may do: what the host refuses never gets here.
type Interceptor func(ctx context.Context, call NativeCall,
	next func(context.Context) (NativeAnswer, error)) (NativeAnswer, error)

// intercepted is a sender whose calls pass an interceptor.
func intercepted(by Interceptor, under sender) sender {
	return func(ctx context.Context, o *operation, native *egress.Call) (egress.Answer, error) {
		route := native.Route
		answer, err := by(ctx, NativeCall{Provider: o.provider.name, Operation: o.Op, Scope: o.memoryScope(),
			Generation: o.generation, ReadOnly: o.readOnly,
			Route: route.Name, Origin: route.Origin, Protocol: egress.ProtocolOf(&route.RouteDecl), Class: route.Class,
			Method: route.Method, URL: native.URL(), Statement: route.Statement, Body: native.Body,
		}, func(ctx context.Context) (NativeAnswer, error) {
			answer, err := under(ctx, o, native)
			return NativeAnswer(answer), err
		})
		return egress.Answer(answer), err
	}
}
