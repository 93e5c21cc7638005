package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// surface is the server at url: the REST service (rest.go), the MCP server (mcp.go), or the library behind memhost's
// gateway (core.go). It has one method per operation. What is common to all surfaces is in the operation's own file,
// and the statements for Neo4j are in bolt.go. The first two have a queue that cannot be inspected; queue.go handles
// the consequences.
type surface interface {
	// rules are the restrictions of the configuration.
	rules(s *settings) []rule
	// setup checks the connection to the graph.
	setup(v *scopedCall, receipt *abi.SetupReceipt) error
	// probe reports what the surface can do, and makes the native calls of health, the cheap and fast ones first: if
	// Neo4j is down, the servers answer after half a minute. code is the warning's code if there is an error.
	probe(v *scopedCall, h *abi.BackendHealth) (code string, err error)
	// add sends turns to the server in order; seq is the number of the last turn before them. The result has one entry
	// for each turn.
	add(v *scopedCall, turns []turn, seq int64) []abi.ReceiptOrError
	// search searches the memory, and reports in the trace which filters were applied, and how.
	search(v *scopedCall, r *abi.RetrieveRequest, query string, t *abi.Trace) (*results, error)
	// holds reports whether the group has any data, or may still get what was sent up to the scope's last turn.
	holds(v *scopedCall, last marker) (bool, error)
	// ready sorts the queued turns into the answer's ids.
	ready(v *scopedCall, queued []marker, answer *abi.BackendReadiness) error
	// findEvent checks whether a turn has arrived; last is the scope's last accepted turn, if any.
	findEvent(v *scopedCall, want, last marker) (*abi.FindEventAnswer, error)
	// reset removes the group, or a part of it.
	reset(v *scopedCall, receipt *abi.ResetReceipt) error
	// forget removes what the request covers.
	forget(f *forgetRun) error
	// inventory counts and hashes what the group holds, and says whether that is everything.
	inventory(v *scopedCall, answer *abi.Inventory) error
	// provenance is called if Neo4j is not configured.
	provenance(p *origins, r *abi.ProvenanceRequest) error
	// queries are the native queries in addition to those of Neo4j; query runs one.
	queries() []menuItem
	query(v *scopedCall, q *menuItem, params []field) ([]byte, error)
	// mutate changes the graph by hand.
	mutate(v *scopedCall, r *abi.NativeMutation) (*abi.MutationReceipt, error)
}

var (
	_ surface = (*restService)(nil)
	_ surface = (*mcp)(nil)
	_ surface = (*core)(nil)
)

// scopedCall is one operation in a scope: the call, the configuration, and the scope's group.
type scopedCall struct {
	*sdk.Call
	*settings
	group string
}

func openCall(c *sdk.Call) (*scopedCall, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	group, err := groupOf(s, c)
	return &scopedCall{c, s, group}, err
}

// trace starts the trace of a native operation.
func (v *scopedCall) trace(operation string) *abi.Trace {
	return &abi.Trace{BackendName: v.config.Provider, NativeOperation: operation}
}

// path returns the parameters of a path: the group, and one more if it has a name.
func (v *scopedCall) path(name, value string) map[string]string {
	params := map[string]string{"group": v.group}
	if name != "" {
		params[name] = value
	}
	return params
}

// http sends a request to the REST service or the gateway and returns the body; a status other than 2xx is an error.
func (v *scopedCall) http(r abi.HTTPRequest, body []byte) ([]byte, error) {
	r.Headers = v.headers
	head, answer, err := v.HTTP(r, body)
	if err != nil {
		return nil, err
	}
	if e := statusError(r.Route, head, answer); e != nil {
		err = e
	}
	return answer, err
}

// queueMS bounds a request that only puts something into a queue.
const queueMS = 10_000
