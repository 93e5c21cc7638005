package sdktest

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/jsonpointer"
)

// Request is a request that the plugin sent.
type Request struct {
	abi.HTTPRequest
	Body string
}

// Reply is the backend's answer; the zero value is status 200 with an empty body.
type Reply struct {
	// Status is the HTTP status; 0 means 200.
	Status  int64
	Headers map[string]string
	Body    string
	// Empty says that the manifest declares this answer as "nothing there".
	Empty bool
	// Err, if set, is a transport error: there is no answer.
	Err *abi.Error
}

// Step is one expected request of a Script, with its reply.
type Step struct {
	Route string
	Reply
}

// Script is a backend that answers the steps in order. A request by another route, or a step that is never requested,
// fails the test.
func Script(t TB, steps ...Step) func(Request) Reply {
	done := 0
	t.Cleanup(func() {
		if done < len(steps) {
			t.Errorf("sdktest: %d of %d scripted requests were sent; route %s was not", done, len(steps),
				steps[done].Route)
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

// routesOf returns the manifest's routes. If a route lists its headers, those of the origin's secrets and those under
// headers in the config block are added, because the host allows these too.
func routesOf(t TB, manifest []byte, block string) map[string]abi.RouteDecl {
	t.Helper()
	var operator struct{ Headers map[string]string }
	_ = json.Unmarshal([]byte(block), &operator) // a test of the configuration may give any text
	var m abi.ModuleManifest
	if err := abi.UnmarshalStrict(manifest, &m); err != nil {
		t.Fatalf("sdktest: manifest: %v", err)
	}
	routes := map[string]abi.RouteDecl{}
	for _, r := range m.Routes {
		if r.Headers != nil {
			r.Headers = append(r.Headers, slices.Collect(maps.Keys(operator.Headers))...)
			for _, s := range m.Secrets {
				if s.Origin == r.Origin {
					r.Headers = append(r.Headers, s.Headers...)
				}
			}
		}
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
		return c.refuseWith(refusal)
	} else if route.Statement != "" {
		return c.refuse(abi.CodeDenied, "http_send: route "+r.Route+" is no HTTP route")
	} else if refusal = unlisted(&route, &r.HTTPRequest); refusal != nil {
		return c.refuseWith(refusal)
	} else if refusal = unmatched(&route, body); refusal != nil {
		return c.refuseWith(refusal)
	}
	if c.HTTP == nil {
		return c.refuse(abi.CodeUnavailable, "http_send: this test has no backend")
	}
	c.Sent = append(c.Sent, r)
	reply := c.HTTP(r)
	if reply.Err != nil {
		return c.refuseWith(reply.Err)
	}
	return c.answer(&abi.HTTPResponse{Status: or(reply.Status, 200), Headers: reply.Headers, Empty: reply.Empty},
		[]byte(reply.Body))
}

// admit finds a route and rejects it if this operation may not use it now. Without a manifest, every name is a route.
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

// unlisted rejects a header or a query key that the route does not list.
func unlisted(route *abi.RouteDecl, r *abi.HTTPRequest) *abi.Error {
	const hint = "list it in the module's manifest, beside the route's method and path"
	for name := range r.Headers {
		if route.Headers != nil && !slices.ContainsFunc(route.Headers, func(listed string) bool {
			return strings.EqualFold(listed, name)
		}) {
			return abi.NewError(abi.CodeDenied, "headers."+name+": route "+r.Route+" does not list it").WithHint(hint)
		}
	}
	for _, q := range r.Query {
		if route.Query != nil && !slices.Contains(route.Query, q.Key) {
			return abi.NewError(abi.CodeDenied, "query."+q.Key+": route "+r.Route+" does not list it").WithHint(hint)
		}
	}
	return nil
}

// unmatched rejects a body without the values that the route requires in it.
func unmatched(route *abi.RouteDecl, body []byte) *abi.Error {
	if len(route.Match) == 0 {
		return nil
	}
	refuse := func(why string) *abi.Error {
		return abi.NewError(abi.CodeDenied, "body of route "+route.Name+": "+why)
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return refuse(err.Error())
	}
	for _, at := range abi.SortedKeys(route.Match) {
		var want any
		if err := json.Unmarshal(route.Match[at], &want); err != nil {
			return refuse("match " + at + ": " + err.Error())
		}
		if found, ok := jsonpointer.Find(value, at); !ok {
			return refuse("nothing at " + at + ", the manifest wants " + string(route.Match[at]))
		} else if !reflect.DeepEqual(found, want) {
			return refuse("another value at " + at + " than " + string(route.Match[at]) + ", which the manifest wants")
		}
	}
	return nil
}
