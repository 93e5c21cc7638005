package host

import (
	"bytes"

	"github.com/memhost/memhost/abi"
)

// hostHTTPSend sends one request by a route of the manifest and holds the answer for the guest.
func hostHTTPSend(c *call, m guestMemory, stack []uint64) {
	stack[0] = func() uint64 {
		var r abi.HTTPRequest
		if err := m.parse(stack[0], stack[1], &r); err != nil {
			return c.refuse(err)
		}
		head, body, err := c.send(&r, bytes.Clone(m.view(stack[2], stack[3])))
		if err != nil {
			return c.refuseRoute(r.Route, err)
		}
		return c.answer(head, body)
	}()
}

// send checks a request against policy and mode, sends it and accounts for it.
func (c *call) send(r *abi.HTTPRequest, body []byte) (*abi.HTTPResponse, []byte, error) {
	route, err := c.route(r.Route, abi.ProtocolHTTP)
	if err != nil {
		return nil, nil, err
	}
	native, err := route.HTTP(r, body)
	if err != nil {
		return nil, nil, err
	}
	if err := c.willSend(route.Class); err != nil {
		return nil, nil, err
	}
	answer, err := c.exchange(native)
	return native.HTTPAnswer(c.ctx, answer, err)
}
