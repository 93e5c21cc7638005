package host

import "github.com/memhost/memhost/abi"

// hostBoltRun runs the statement of one route of the manifest and holds its rows for the guest.
func hostBoltRun(c *call, m guestMemory, stack []uint64) {
	stack[0] = func() uint64 {
		var r abi.BoltRequest
		if err := m.parse(stack[0], stack[1], &r); err != nil {
			return c.refuse(err)
		}
		head, rows, err := c.query(&r)
		if err != nil {
			return c.refuseRoute(r.Route, err)
		}
		return c.answer(head, rows)
	}()
}

// query checks a statement against policy and mode, runs it and accounts for it.
func (c *call) query(r *abi.BoltRequest) (*abi.BoltResult, []byte, error) {
	route, err := c.route(r.Route, abi.ProtocolBolt)
	if err != nil {
		return nil, nil, err
	}
	native, err := route.Bolt(r, c.provider.deadline(c.op))
	if err != nil {
		return nil, nil, err
	}
	if err := c.willSend(route.Class); err != nil {
		return nil, nil, err
	}
	answer, err := c.exchange(native)
	return native.BoltAnswer(c.ctx, answer, err)
}
