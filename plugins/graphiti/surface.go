package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// surface is what url names: the REST service (rest.go), the MCP server (mcp.go), or the library behind memhost's
// gateway (core.go). It has one method for each operation; what all surfaces do alike is in the operation's own file,
// and what Neo4j is asked in bolt.go. The first two have a queue, of which they tell nothing: what follows from that is
// in queue.go.
type surface interface {
	// rules are what a configuration may not say.
	rules(s *settings) []rule
	// setup proves that the way to the graph works.
	setup(v *visit, receipt *abi.SetupReceipt) error
	// probe says what the surface can, and makes the native calls of health, the cheap and quick ones first: with Neo4j
	// down the servers answer after half a minute. code is the warning's, where there is an error.
	probe(v *visit, h *abi.BackendHealth) (code string, err error)
	// add gives turns to the server in order; seq is the number of the last turn before them. The result has one entry
	// for each.
	add(v *visit, turns []turn, seq int64) []abi.ReceiptOrError
	// search finds memory, and sets in the trace which filters were applied, and how.
	search(v *visit, r *abi.RetrieveRequest, query string, t *abi.Trace) (*found, error)
	// holds reports whether the group has anything, or may yet get what was sent until the scope's last turn.
	holds(v *visit, last marker) (bool, error)
	// ready sorts the queued turns into the answer's ids.
	ready(v *visit, queued []marker, answer *abi.BackendReadiness) error
	// findEvent looks whether a turn has arrived; last is the scope's last turn that was taken, if any.
	findEvent(v *visit, want, last marker) (*abi.FindEventAnswer, error)
	// reset removes the group, or a part of it.
	reset(v *visit, receipt *abi.ResetReceipt) error
	// forget removes what is meant.
	forget(f *forgetting) error
	// inventory counts and hashes what the group holds, and says whether that is all of it.
	inventory(v *visit, answer *abi.Inventory) error
	// provenance is asked where Neo4j is not configured.
	provenance(p *origins, r *abi.ProvenanceRequest) error
	// queries are the native queries besides those of Neo4j; query makes one.
	queries() []menuItem
	query(v *visit, q *menuItem, params []field) ([]byte, error)
	// mutate changes the graph by hand.
	mutate(v *visit, r *abi.NativeMutation) (*abi.MutationReceipt, error)
}

var (
	_ surface = (*rest)(nil)
	_ surface = (*mcp)(nil)
	_ surface = (*core)(nil)
)

// visit is one operation in a scope: the call, the configuration, and the scope's group.
type visit struct {
	*sdk.Call
	*settings
	group string
}

func visiting(c *sdk.Call) (*visit, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	group, err := groupOf(s, c)
	return &visit{c, s, group}, err
}

// trace begins the trace of a native operation.
func (v *visit) trace(operation string) *abi.Trace {
	return &abi.Trace{BackendName: v.config.Provider, NativeOperation: operation}
}

// path are the parameters of a path: the group, and one more where it has a name.
func (v *visit) path(name, value string) map[string]string {
	params := map[string]string{"group": v.group}
	if name != "" {
		params[name] = value
	}
	return params
}

// http sends a request to the REST service or the gateway and returns the body, with an error for a status that is not
// 2xx.
func (v *visit) http(r abi.HTTPRequest, body []byte) ([]byte, error) {
	r.Headers = v.headers
	head, answer, err := v.HTTP(r, body)
	if err != nil {
		return nil, err
	}
	if e := refused(r.Route, head, answer); e != nil {
		err = e
	}
	return answer, err
}

// queueMS bounds a request that only puts something into a queue.
const queueMS = 10_000
