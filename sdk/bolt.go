package sdk

import (
	"bytes"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// Bolt runs the statement of one of the manifest's routes. params is a JSON object, or nil. It returns the head and the
// rows: one JSON array per line, in the order of the head's Columns. EachRow iterates over them. If the head's More is
// set, the host cut the rows.
//
// Errors of the database: unauthenticated, timeout, unavailable (also for a transient failure), backend. Their Reason
// is Neo4j's code, such as Neo.ClientError.Statement.SyntaxError, and Native has the code and the message. Errors
// before the database is reached: denied, read_only, invalid_argument, too_large.
func (c *Call) Bolt(route string, params []byte) (*abi.BoltResult, []byte, error) {
	head := new(abi.BoltResult)
	rows, err := c.take(c.host.BoltRun(abi.Marshal(&abi.BoltRequest{Route: route, Params: params})), head)
	if err != nil {
		return nil, nil, err
	}
	return head, rows, nil
}

// EachRow calls each for every row of a Bolt result. A row is a JSON array, valid as long as rows is. It stops at the
// first error and returns it.
func EachRow(rows []byte, each func(row []byte) error) error {
	for len(rows) > 0 {
		row, rest, _ := bytes.Cut(rows, newline)
		if err := each(row); err != nil {
			return err
		}
		rows = rest
	}
	return nil
}

var newline = []byte{'\n'}

// EachColumn calls each for every column of a row, with its index from 0 and a decoder positioned before its value.
// each must read or skip the value.
func EachColumn(row []byte, each func(i int, d *wirejson.Decoder) error) error {
	i := -1
	return wirejson.DecodeBytes(row).Arr(func(d *wirejson.Decoder) error {
		i++
		return each(i, d)
	})
}
