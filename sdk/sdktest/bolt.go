package sdktest

import (
	"bytes"
	"strings"

	"github.com/memhost/memhost/abi"
)

// Query is a statement that the plugin ran.
type Query struct {
	Route string
	// Statement is the route's text in the manifest; empty if the test has no manifest.
	Statement string
	// Params is the object of parameters as the plugin wrote it; {} if it passed none.
	Params string
}

// Rows is the database's answer; the zero value has no rows.
type Rows struct {
	Columns []string
	// Rows are JSON arrays, each with as many values as there are columns.
	Rows []string
	// More says that the host cut the rows.
	More     bool
	Counters map[string]int64
	// Server is the database's name and version.
	Server string
	// Err, if set, is returned instead of rows.
	Err *abi.Error
}

func (c *call) BoltRun(head []byte) uint64 {
	var r abi.BoltRequest
	if err := abi.UnmarshalStrict(head, &r); err != nil {
		return c.refuse(abi.CodeInvalidArgument, "bolt_run: "+err.Error())
	}
	q := Query{Route: r.Route, Params: or(string(r.Params), "{}")}
	if !strings.HasPrefix(q.Params, "{") {
		return c.refuse(abi.CodeInvalidArgument, "bolt_run: params: want an object")
	}
	route, refusal := c.admit(abi.ImportBoltRun, r.Route)
	switch {
	case refusal != nil:
		return c.refuseWith(refusal)
	case c.routes != nil && route.Statement == "":
		return c.refuse(abi.CodeDenied, "bolt_run: route "+r.Route+" is no Bolt route")
	case c.Bolt == nil:
		return c.refuse(abi.CodeUnavailable, "bolt_run: this test has no database")
	}
	q.Statement = route.Statement
	c.Ran = append(c.Ran, q)
	rows := c.Bolt(q)
	if rows.Err != nil {
		return c.refuseWith(rows.Err)
	}
	var body bytes.Buffer
	for _, row := range rows.Rows {
		if !abi.ValidJSON([]byte(row)) || strings.ContainsRune(row, '\n') || !strings.HasPrefix(row, "[") {
			c.t.Fatalf("sdktest: a row of %s is no JSON array on one line: %s", r.Route, row)
		}
		body.WriteString(row)
		body.WriteByte('\n')
	}
	return c.answer(&abi.BoltResult{Columns: rows.Columns, Rows: int64(len(rows.Rows)), More: rows.More,
		Counters: rows.Counters, Server: rows.Server}, body.Bytes())
}
