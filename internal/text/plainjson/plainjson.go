// Package plainjson is encoding/json without the escapes for HTML: what is written stays readable for people.
package plainjson

import (
	"bytes"
	"encoding/json"
)

// Marshal is json.Marshal, but for <, > and &, which stay as they are.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
