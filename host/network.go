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

// HTTP implements guest.Powers. Package egress enforces the network policy; HTTP adds the operation's own limits and
// accounting.
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

// willSend is called before a native call leaves. It stops a write if this host's session may have ended, because
// another host may then act for the scope.
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

// sender makes a native call for an operation, after policy and mode have allowed it.
type sender func(ctx context.Context, o *operation, native *egress.Call) (egress.Answer, error)

// sendPlain sends the call and does nothing else.
func sendPlain(ctx context.Context, _ *operation, native *egress.Call) (egress.Answer, error) {
	return native.Send(ctx)
}

// NativeCall is one call to a backend as it leaves the host, after route table, mode and policy have allowed it. It has
// no credentials: the host adds those headers later.
type NativeCall struct {
	// Provider and Operation identify the provider and the operation of the contract for which the guest makes the
	// call.
	Provider, Operation string
	// Scope is the scope of the operation, or the zero value if it has none; Generation counts the scope's resets.
	Scope      abi.MemoryScope
	Generation int64
	// ReadOnly is true if this operation may only read.
	ReadOnly bool

	// Route and Class come from the manifest. Origin is the origin's name there. Protocol is http or bolt.
	Route, Origin, Protocol string
	Class                   abi.Class
	// Method and URL are set for HTTP calls.
	Method, URL string
	// Statement is set for Bolt calls.
	Statement string
	// Body is the body of an HTTP request, or the parameters of a Bolt call as JSON. It must not be changed.
	Body []byte
}

// NativeAnswer is a backend's answer to a NativeCall.
type NativeAnswer struct {
	// Status and Header are set for HTTP; a Bolt answer has 0 and nil.
	Status int
	Header http.Header
	// Body is the body of an HTTP answer, or the rows of a Bolt answer, each a JSON array followed by a newline.
	Body []byte
	// Bolt is the head of a Bolt answer. An interceptor that makes up an answer may leave it out: the rows then have no
	// column names.
	Bolt *abi.BoltResult
}

// NativeFailure is the error for a failure that a Bolt server returned. Code is the server's, such as
// Neo.ClientError.Statement.SyntaxError, and Message is its text.
type NativeFailure = egress.Failure

// Interceptor sees a native call and decides what the guest gets. next makes the call; the interceptor may call it not
// at all, once, repeatedly, or after it has returned (with its own context). An error means that no answer came: the
// guest gets timeout if ctx has ended, else unavailable. A NativeFailure means that a Bolt server answered with a
// failure.
//
// Tests use it to inject faults that a real backend does not produce on demand, and recordings use it to capture calls.
// It cannot widen what a guest may do: calls that the host refuses never get here.
type Interceptor func(ctx context.Context, call NativeCall,
	next func(context.Context) (NativeAnswer, error)) (NativeAnswer, error)

// intercepted returns a sender whose calls go through an interceptor.
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
