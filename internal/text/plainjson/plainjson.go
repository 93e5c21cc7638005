// Package plainjson is encoding/json without HTML escapes, so that the output is readable for people.
package plainjson

import (
	"bytes"
	"encoding/json"
)

// Marshal is json.Marshal, but does not escape <, > and &.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
