package server_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/plugins"
)

func TestTheGuestsSchemaIsTheTypes(t *testing.T) {
	text, err := server.GuestSchema()
	require.NoError(t, err)
	file := filepath.Join("..", "..", "..", "docs", "schemas", "guest.schema.json")
	if *update {
		require.NoError(t, os.WriteFile(file, text, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text), "go test ./internal/doors/server -update writes it anew")
	var doc struct {
		Exports map[string]any `json:"exports"`
	}
	require.NoError(t, json.Unmarshal(text, &doc))
	for _, op := range append(abi.RequiredOperations(), abi.OptionalOperations()...) {
		assert.Contains(t, doc.Exports, op)
	}
}

// guestSchema returns the compiled schema at a JSON Pointer, nil if there is none.
func guestSchema(t *testing.T) func(pointer string) *jsonschema.Schema {
	t.Helper()
	text, err := server.GuestSchema()
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("guest.json", doc))
	known := map[string]*jsonschema.Schema{}
	return func(pointer string) *jsonschema.Schema {
		if s, ok := known[pointer]; ok {
			return s
		}
		s, err := c.Compile("guest.json#" + pointer)
		if err != nil {
			s = nil
		}
		known[pointer] = s
		return s
	}
}

// TestTheGuestsSchemaAcceptsWhatWasRecorded checks every cassette and the manifests of the built-in modules.
func TestTheGuestsSchemaAcceptsWhatWasRecorded(t *testing.T) {
	schema := guestSchema(t)
	checked := map[string]int{}
	check := func(pointer string, text []byte) {
		t.Helper()
		s := schema(pointer)
		if s == nil || len(text) == 0 {
			return
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err, "%s: %s", pointer, text)
		require.NoError(t, s.Validate(v), "%s: %s", pointer, text)
		checked[pointer]++
	}
	for _, m := range plugins.Builtin() {
		module, err := host.Inspect(m.Wasm, host.Limits{})
		require.NoError(t, err)
		check("/manifest", abi.Marshal(module.Manifest))
	}
	files, err := filepath.Glob("../../../plugins/testdata/*.cassette")
	require.NoError(t, err)
	older, err := filepath.Glob("../../test/compat/testdata/*/cassettes/*.cassette.gz")
	require.NoError(t, err)
	for _, file := range append(files, older...) {
		f, err := os.Open(file)
		require.NoError(t, err)
		text := io.Reader(f)
		if filepath.Ext(file) == ".gz" {
			text, err = gzip.NewReader(f)
			require.NoError(t, err)
		}
		lines := bufio.NewScanner(text)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			var line struct {
				Operation cassette.Operation `json:"operation"`
			}
			require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
			for _, e := range line.Operation.Entries {
				if e.Op == abi.InitExport {
					continue
				}
				check("/envelope", e.Request)
				var envelope struct {
					Body json.RawMessage `json:"body"`
				}
				require.NoError(t, json.Unmarshal(e.Request, &envelope))
				check("/exports/"+e.Op+"/request", envelope.Body)
				if e.IsError {
					check("/error", e.Answer)
				} else {
					check("/exports/"+e.Op+"/answer", e.Answer)
				}
				for _, c := range e.Calls {
					if c.IsError {
						check("/error", c.Head)
						continue
					}
					if len(c.In) > 0 {
						check("/imports/"+c.Name+"/request", c.In[0])
					}
					check("/imports/"+c.Name+"/answer", c.Head)
				}
			}
		}
		require.NoError(t, lines.Err())
		require.NoError(t, f.Close())
	}
	for _, pointer := range []string{"/manifest", "/envelope", "/exports/retrieve/answer", "/exports/record_event/request",
		"/error", "/exports/record_events/answer", "/exports/readiness/answer",
		"/imports/config/answer", "/imports/state_list/answer", "/imports/http_send/request", "/imports/http_send/answer"} {
		assert.NotZero(t, checked[pointer], pointer)
	}
	t.Log(checked)
}

func TestTheGuestsSchemaRefusesWhatLacksSomething(t *testing.T) {
	schema := guestSchema(t)
	for pointer, text := range map[string]string{
		"/exports/retrieve/answer":      `{"formatted_context":""}`,
		"/exports/record_event/request": `{"event_id":"e"}`,
		"/imports/http_send/request":    `{"params":{}}`,
		"/imports/state_put/answer":     `{"version":"8"}`,
	} {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
		require.NoError(t, err)
		require.NotNil(t, schema(pointer), pointer)
		assert.Error(t, schema(pointer).Validate(v), pointer)
	}
}
