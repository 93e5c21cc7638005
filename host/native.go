package host

import (
	"fmt"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/egress"
)

// route finds a route and checks that this call may use its class now.
func (c *call) route(name, protocol string) (*egress.Route, error) {
	route, err := c.provider.network.Route(name, protocol)
	if err != nil {
		return nil, err
	}
	if c.readOnly && route.Class != abi.ClassRead {
		return nil, abi.NewError(abi.CodeReadOnly,
			fmt.Sprintf("route %s is of class %s, and the slot is read-only", name, route.Class))
	}
	admins := []string{abi.OpSetupScope, abi.OpResetScope, abi.OpNativeMutation, abi.OpForget}
	if route.Class == abi.ClassAdmin && !slices.Contains(admins, c.op) {
		return nil, abi.NewError(abi.CodeDenied,
			fmt.Sprintf("route %s is of class admin, which %s may not use", name, c.op))
	}
	return route, nil
}

// exchange makes a native call, past the interceptor where there is one, and accounts for it.
func (c *call) exchange(native *egress.Call) (egress.Answer, error) {
	began := time.Now()
	answer, err := c.intercepted(native)
	took := time.Since(began)
	status, effect := native.Outcome(answer, err)
	c.backend += took
	c.io = append(c.io, abi.IO{Route: native.Route.Name, Class: string(native.Route.Class), Status: status, MS: ms(took),
		BytesOut: int64(len(native.Body)), BytesIn: int64(len(answer.Body)), Retries: native.Retries()})
	c.didSend(native.Route.Class, effect)
	return answer, err
}

// refuseRoute makes the error of a native call the pending result.
func (c *call) refuseRoute(route string, err error) uint64 {
	e := *abi.AsError(err)
	e.Route = route
	return c.refuse(&e)
}

// ms is a duration in milliseconds, to the microsecond.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
