package cassette

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAnOlderCassetteDoesNotKnowWhatWasAdded(t *testing.T) {
	present, older := Header{Revision: Revision}, Header{Revision: Revision - 1}
	for _, tt := range []struct {
		name, recorded, got string
		same                bool
	}{
		{"a member is added", `{"a":1}`, `{"a":1,"b":2}`, true},
		{"a member is added further in", `{"a":[{"b":null}]}`, `{"a":[{"b":null,"c":{}}]}`, true},
		{"another order", `{"a":1,"b":"x"}`, `{"b":"x","a":1}`, true},
		{"a warning is added before", `{"warnings":["x: 1"]}`, `{"warnings":["y: 2","x: 1"]}`, true},
		{"a warning is added where there was none", `{"trace":{"warnings":[]}}`, `{"trace":{"warnings":["y: 2"]}}`,
			true},
		{"a member is missing", `{"a":1,"b":null}`, `{"a":1}`, false},
		{"another value", `{"a":1}`, `{"a":2,"b":1}`, false},
		{"another text", `{"a":"x"}`, `{"a":"y"}`, false},
		{"another type", `{"a":1}`, `{"a":{}}`, false},
		{"an object for a list", `{"a":[]}`, `{"a":{}}`, false},
		{"a number written otherwise", `{"a":1}`, `{"a":1.0}`, false},
		{"an item is added", `{"evidence":[1]}`, `{"evidence":[1,2]}`, false},
		{"an item is missing", `{"evidence":[1,2]}`, `{"evidence":[1]}`, false},
		{"a warning is missing", `{"warnings":["x: 1","y: 2"]}`, `{"warnings":["y: 2","z: 3"]}`, false},
		{"warnings in another order", `{"warnings":["x: 1","y: 2"]}`, `{"warnings":["y: 2","x: 1"]}`, false},
		{"no JSON", `{"a":1}`, `{"a":1`, false},
	} {
		assert.Equal(t, tt.same, older.Same([]byte(tt.recorded), []byte(tt.got)), tt.name)
		assert.False(t, present.Same([]byte(tt.recorded), []byte(tt.got)), "%s: byte for byte", tt.name)
		assert.True(t, present.Same([]byte(tt.recorded), []byte(tt.recorded)), tt.name)
	}
	assert.False(t, present.Older())
	assert.True(t, older.Older())
}
