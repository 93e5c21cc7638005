package sdk

import (
	"bytes"

	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
)

// Bolt runs the statement of one of the manifest's routes with parameters: a JSON object, nil for none. What comes back are the rows, each
// a JSON array in the order of the head's Columns, one to a line; EachRow walks them. A head with More set has fewer rows than the database.
//
// The error is the database's too: unauthenticated, timeout, unavailable (also for a transient failure), backend; Reason is then the code of
// Neo4j, such as Neo.ClientError.Statement.SyntaxError, and Native holds it with the message. Of the way there: denied, read_only,
// invalid_argument, too_large.
func (c *Call) Bolt(route string, params []byte) (*abi.BoltResult, []byte, error) {
	head := new(abi.BoltResult)
	rows, err := c.take(c.host.BoltRun(abi.Marshal(&abi.BoltRequest{Route: route, Params: params})), head)
	if err != nil {
		return nil, nil, err
	}
	return head, rows, nil
}

// EachRow calls each with every row of a Bolt result: a JSON array, valid as long as rows is. It ends with the first error.
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

// EachColumn calls each with every column of a row, by its index, and a decoder that stands before its value. It must read the value, or
// skip it.
func EachColumn(row []byte, each func(i int, d *wirejson.Decoder) error) error {
	i := -1
	return wirejson.DecodeBytes(row).Arr(func(d *wirejson.Decoder) error {
		i++
		return each(i, d)
	})
}
