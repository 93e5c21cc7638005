package sdk_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// brokenHost announces more than it returns, or returns something that is not JSON.
type brokenHost struct {
	sdk.Host
	memo    sdk.Memo
	packed  uint64
	content string
}

func (h *brokenHost) Memo() *sdk.Memo           { return &h.memo }
func (h *brokenHost) StateGet([]byte) uint64    { return h.packed }
func (h *brokenHost) StateList([]byte) uint64   { return h.packed }
func (h *brokenHost) StateRead([]byte) uint64   { return h.packed }
func (h *brokenHost) Pull(dst []byte) int       { return copy(dst, h.content) }
func (h *brokenHost) TokensCount([]byte) int64  { return 0 }
func (h *brokenHost) Log(level int32, _ []byte) {}

func envelope(body string) []byte {
	return []byte(`{"op":"format_context","scope":{"run_id":"r","persona_id":"p"},"generation":3,"mode":{"read_only":true},` +
		`"deadline_ms":250,"now":"2026-07-01T12:00:00Z","resume":{"missing":["m1"],"markers":["k"]},"body":` + body +
		`}`)
}

func TestAnswer(t *testing.T) {
	for _, tt := range []struct {
		name     string
		envelope []byte
		fails    error
		code     abi.Code
		want     string
	}{
		{"an answer is the operation's", envelope(`{"scope":{"run_id":"r","persona_id":"p"}}`), nil, "",
			`{"formatted_context":"r","token_count":0,"truncated":false}`},
		{"a null body is an empty request", envelope(`null`), nil, "",
			`{"formatted_context":"","token_count":0,"truncated":false}`},
		{"unknown fields of the envelope are ignored",
			append([]byte(`{"future":[1,{"body":2}],`), envelope(`{}`)[1:]...),
			nil, "",
			`{"formatted_context":"","token_count":0,"truncated":false}`},
		{"an error of the contract crosses as it is", envelope(`{}`), abi.NewError(abi.CodeRateLimited, "slow down"),
			abi.CodeRateLimited, "slow down"},
		{"any other error is internal", envelope(`{}`), errors.New("oops"), abi.CodeInternal, "oops"},
		{"a request of the wrong type names the field", envelope(`{"scope":7}`), nil, abi.CodeInvalidArgument,
			"scope: want an object, got a number"},
		{"an envelope that is no JSON is the host's fault", []byte(`{"op":`), nil, abi.CodeInternal,
			"the host's request: invalid_argument: not JSON: unexpected end of input at byte 6"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			operation := func(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
				return &abi.FormatResult{FormattedContext: r.Scope.RunID}, tt.fails
			}
			answer, isError := sdk.Answer([]byte(">"), tt.envelope, &brokenHost{}, operation)
			require.Equal(t, byte('>'), answer[0], "the answer is appended")
			assert.Equal(t, tt.code != "", isError)
			if !isError {
				assert.Equal(t, tt.want, string(answer[1:]))
				return
			}
			var e abi.Error
			require.NoError(t, abi.Unmarshal(answer[1:], &e))
			assert.Equal(t, tt.code, e.Code)
			assert.Equal(t, tt.want, e.Message)
		})
	}
}

func TestACallKnowsItsEnvelope(t *testing.T) {
	_, isError := sdk.Answer(nil, envelope(`{}`), &brokenHost{}, func(c *sdk.Call,
		_ *abi.FormatRequest) (*abi.FormatResult, error) {
		assert.Equal(t, "format_context", c.Op)
		assert.Equal(t, abi.MemoryScope{RunID: "r", PersonaID: "p"}, c.Scope)
		assert.Equal(t, int64(3), c.Generation)
		assert.True(t, c.ReadOnly)
		assert.Equal(t, int64(250), c.DeadlineMS)
		assert.Equal(t, "2026-07-01T12:00:00Z", c.Now)
		assert.Equal(t, &abi.Resume{Missing: []string{"m1"}, Markers: []string{"k"}}, c.Resume)
		return &abi.FormatResult{}, nil
	})
	assert.False(t, isError)
}

func TestABrokenHostIsAnInternalError(t *testing.T) {
	for _, tt := range []struct {
		name string
		host brokenHost
		call func(*sdk.Call) error
	}{
		{"fewer bytes than announced", brokenHost{packed: abi.Pack(0, 20, false), content: "{}"},
			func(c *sdk.Call) error { _, _, err := c.Get("k"); return err }},
		{"a head that is no JSON", brokenHost{packed: abi.Pack(0, 2, false), content: "{]"},
			func(c *sdk.Call) error { _, _, err := c.Get("k"); return err }},
		{"a zero result", brokenHost{}, func(c *sdk.Call) error { _, _, err := c.Get("k"); return err }},
		{"values shorter than their sizes", brokenHost{packed: abi.Pack(1, 48, false),
			content: `{"keys":[{"key":"k","version":1,"size":2}],"x":1}` + "v"},
			func(c *sdk.Call) error { _, _, err := c.List(abi.StateListRequest{Values: true}); return err }},
		{"entries shorter than their sizes", brokenHost{packed: abi.Pack(1, 36, false),
			content: `{"entries":[{"seq":1,"size":2}],"x":1}` + "v"},
			func(c *sdk.Call) error { _, _, err := c.Read(abi.StateReadRequest{Log: "l"}); return err }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.call(sdk.NewCall(&tt.host, &abi.Envelope{}))
			assert.Equal(t, abi.CodeInternal, abi.CodeOf(err), "%v", err)
		})
	}
}
