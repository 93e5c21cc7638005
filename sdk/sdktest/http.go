package sdktest

import (
	"bytes"

	"github.com/memhost/memhost/abi"
)

// Request is what the plugin sent by a route.
type Request struct {
	abi.HTTPRequest
	Body string
}

// Reply is what the backend answers; the zero value is status 200 with an empty body.
type Reply struct {
	// Status is the HTTP status; 0 means 200.
	Status  int64
	Headers map[string]string
	Body    string
	// Empty says that the manifest declares this answer as "nothing there".
	Empty bool
	// Err, where it is set, is what went wrong on the way: there is no answer.
	Err *abi.Error
}

// Step is one request that a Script waits for, with its reply.
type Step struct {
	Route string
	Reply
}

// Script is a backend that answers the steps in order. A request by another route fails the test, and so does a step
// that nobody asked for.
func Script(t TB, steps ...Step) func(Request) Reply {
	done := 0
	t.Cleanup(func() {
		if done < len(steps) {
			t.Errorf("sdktest: %d of %d scripted requests were sent; route %s was not", done, len(steps), steps[done].Route)
		}
	})
	return func(r Request) Reply {
		t.Helper()
		if done == len(steps) || steps[done].Route != r.Route {
			t.Errorf("sdktest: request %d goes by route %s, which is not what the script says", done+1, r.Route)
			return Reply{Err: abi.NewError(abi.CodeUnavailable, "not in the script: "+r.Route)}
		}
		done++
		return steps[done-1].Reply
	}
}

func routesOf(t TB, manifest []byte) map[string]abi.RouteDecl {
	t.Helper()
	var m abi.ModuleManifest
	if err := abi.UnmarshalStrict(manifest, &m); err != nil {
		t.Fatalf("sdktest: manifest: %v", err)
	}
	routes := map[string]abi.RouteDecl{}
	for _, r := range m.Routes {
		routes[r.Name] = r
	}
	return routes
}

func (c *call) HTTPSend(head, body []byte) uint64 {
	var r Request
	if err := abi.UnmarshalStrict(head, &r.HTTPRequest); err != nil {
		return c.refuse(abi.CodeInvalidArgument, "http_send: "+err.Error())
	}
	r.Body = string(bytes.Clone(body))
	if route, refusal := c.admit(abi.ImportHTTPSend, r.Route); refusal != nil {
		return c.refuse(refusal.Code, refusal.Message)
	} else if route.Statement != "" {
		return c.refuse(abi.CodeDenied, "http_send: route "+r.Route+" is no HTTP route")
	}
	if c.HTTP == nil {
		return c.refuse(abi.CodeUnavailable, "http_send: this test has no backend")
	}
	c.Sent = append(c.Sent, r)
	reply := c.HTTP(r)
	if reply.Err != nil {
		c.pending = abi.Marshal(reply.Err)
		return abi.Pack(0, uint32(len(c.pending)), true)
	}
	return c.answer(&abi.HTTPResponse{Status: or(reply.Status, 200), Headers: reply.Headers, Empty: reply.Empty},
		[]byte(reply.Body))
}

// admit finds a route and refuses what this operation may not use now. Without a manifest every name is a route.
func (c *call) admit(power, name string) (abi.RouteDecl, *abi.Error) {
	if c.routes == nil {
		return abi.RouteDecl{}, nil
	}
	route, known := c.routes[name]
	switch {
	case !known:
		return route, abi.NewError(abi.CodeDenied, power+": the manifest has no route "+name)
	case c.ReadOnly && route.Class != abi.ClassRead:
		return route, abi.NewError(abi.CodeReadOnly, power+": route "+name+" is of class "+string(route.Class))
	case route.Class == abi.ClassAdmin && c.op != abi.OpSetupScope && c.op != abi.OpResetScope &&
		c.op != abi.OpNativeMutation && c.op != abi.OpForget:
		return route, abi.NewError(abi.CodeDenied, power+": "+c.op+" may not use route "+name+" of class admin")
	}
	return route, nil
}
