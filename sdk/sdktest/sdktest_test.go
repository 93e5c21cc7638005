package sdktest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
)

var scope = abi.MemoryScope{RunID: "run", PersonaID: "mara"}

func event(id string) *abi.MemoryEvent {
	return &abi.MemoryEvent{EventID: id, RunID: "run", UserID: "mara", SessionID: "s", TurnID: "t",
		Timestamp: "2026-01-12T09:00:00Z",
		Messages:  []abi.Message{{Role: abi.RoleUser, Content: new("hello")}}}
}

// keep stores one key per event and fails for events whose id begins with "bad".
func keep(c *sdk.Call, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	if err := c.Put("event/"+e.EventID, []byte(*e.Messages[0].Content), 0); err != nil {
		return nil, err
	}
	if _, err := c.Append("log", []byte(e.EventID)); err != nil {
		return nil, err
	}
	if strings.HasPrefix(e.EventID, "bad") {
		return nil, abi.NewError(abi.CodeBackend, "refused")
	}
	return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted}, nil
}

func TestAFailedOperationLeavesNoStateBehind(t *testing.T) {
	h := sdktest.New(t, sdktest.Options{})
	for _, id := range []string{"e1", "bad1", "e2", "bad2"} {
		receipt, err := sdktest.Do(h, abi.OpRecordEvent, scope, keep, event(id))
		if strings.HasPrefix(id, "bad") {
			assert.ErrorIs(t, err, &abi.Error{Code: abi.CodeBackend})
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, id, receipt.EventID)
	}
	assert.Equal(t, []string{"event/e1", "event/e2"}, h.Keys(scope))
	entries, last, err := h.Call(abi.OpRetrieve, scope).Read(abi.StateReadRequest{Log: "log"})
	require.NoError(t, err)
	assert.Equal(t, int64(2), last)
	assert.Equal(t, []sdk.Entry{{Seq: 1, Data: []byte("e1")}, {Seq: 2, Data: []byte("e2")}}, entries)

	_, err = sdktest.Do(h, abi.OpRecordEvent, scope, keep, event("e1"))
	assert.Equal(t, abi.CodeConflict, abi.CodeOf(err), "the key is there already")
}

func TestARequestIsValidatedAsTheHostDoes(t *testing.T) {
	e := event("e")
	e.Timestamp = "yesterday"
	_, err := sdktest.Do(sdktest.New(t, sdktest.Options{}), abi.OpRecordEvent, scope, keep, e)
	assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
	assert.True(t, strings.HasPrefix(abi.AsError(err).Message, "timestamp"), "%v", err)
}

func TestScopesAndGenerationsShareNothing(t *testing.T) {
	h := sdktest.New(t, sdktest.Options{})
	other := abi.MemoryScope{RunID: "run", PersonaID: "jonas"}
	_, err := sdktest.Do(h, abi.OpRecordEvent, scope, keep, event("e"))
	require.NoError(t, err)
	assert.Empty(t, h.Keys(other))

	reset := func(*sdk.Call, *abi.Empty) (*abi.ResetReceipt, error) {
		return &abi.ResetReceipt{Status: abi.ResetDone}, nil
	}
	_, err = sdktest.Do(h, abi.OpResetScope, scope, reset, &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, []int64{2, 1}, []int64{h.Generation(scope), h.Generation(other)})
	assert.Empty(t, h.Keys(scope), "the new generation begins empty")
}

func TestWritesAreForWritingOperationsOutsideReadOnlyMode(t *testing.T) {
	for _, tt := range []struct {
		op       string
		readOnly bool
		code     abi.Code
	}{
		{abi.OpRecordEvent, false, ""},
		{abi.OpSetupScope, false, ""},
		{abi.OpRetrieve, false, abi.CodeDenied},
		{abi.OpHealth, false, abi.CodeDenied},
		{abi.OpRecordEvent, true, abi.CodeReadOnly},
	} {
		t.Run(fmt.Sprintf("%s, read-only %v", tt.op, tt.readOnly), func(t *testing.T) {
			c := sdktest.New(t, sdktest.Options{ReadOnly: tt.readOnly}).Call(tt.op, scope)
			_, errAppend := c.Append("l", nil)
			_, errDelete := c.Delete("")
			for _, err := range []error{c.Put("k", nil, sdk.AnyVersion), errAppend, errDelete} {
				assert.Equal(t, tt.code, abi.CodeOf(err))
			}
			_, _, err := c.Get("k")
			assert.Equal(t, tt.op == abi.OpHealth, err != nil, "reading is allowed wherever there is a scope")
		})
	}
}

func TestNamesAreCheckedAsTheHostDoes(t *testing.T) {
	c := sdktest.New(t, sdktest.Options{}).Call(abi.OpRecordEvent, scope)
	for _, name := range []string{"", strings.Repeat("k", 513), "\xff"} {
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(c.Put(name, nil, sdk.AnyVersion)), "%q", name)
	}
	assert.NoError(t, c.Put(strings.Repeat("k", 512), nil, sdk.AnyVersion))
}

// TestStateAgreesWithAModel runs random histories against a map and a list.
func TestStateAgreesWithAModel(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "a/1", "a/2", "b", "b/é", "c"})
	rapid.Check(t, func(t *rapid.T) {
		c := sdktest.New(t, sdktest.Options{PageLimit: 2, PageBytes: 10}).Call(abi.OpRecordEvent, scope)
		keys, logs := map[string]string{}, map[string][]string{}
		versions := map[string]int64{}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				key, value := name.Draw(t, "key"), rapid.String().Draw(t, "value")
				expected := rapid.SampledFrom([]int64{sdk.AnyVersion, 0, versions[key]}).Draw(t, "expected")
				err := c.Put(key, []byte(value), expected)
				if expected != sdk.AnyVersion && expected != versions[key] {
					require.Equal(t, abi.CodeConflict, abi.CodeOf(err))
					return
				}
				require.NoError(t, err)
				_, version, err := c.Get(key)
				require.NoError(t, err)
				require.Greater(t, version, versions[key])
				keys[key], versions[key] = value, version
			},
			"append": func(t *rapid.T) {
				log, entry := name.Draw(t, "log"), rapid.String().Draw(t, "entry")
				seq, err := c.Append(log, []byte(entry))
				require.NoError(t, err)
				logs[log] = append(logs[log], entry)
				require.Equal(t, int64(len(logs[log])), seq)
			},
			"delete": func(t *rapid.T) {
				prefix := rapid.OneOf(name, rapid.Just(""), rapid.Just("a/")).Draw(t, "prefix")
				want := 0
				for key := range keys {
					if strings.HasPrefix(key, prefix) {
						delete(keys, key)
						versions[key] = 0
						want++
					}
				}
				for log, entries := range logs {
					if strings.HasPrefix(log, prefix) {
						want += len(entries)
						delete(logs, log)
					}
				}
				deleted, err := c.Delete(prefix)
				require.NoError(t, err)
				require.Equal(t, int64(want), deleted)
			},
			"": func(t *rapid.T) {
				requireKeys(t, c, keys)
				for log, entries := range logs {
					requireLog(t, c, log, entries)
				}
			},
		})
	})
}

func requireKeys(t *rapid.T, c *sdk.Call, want map[string]string) {
	got, after := map[string]string{}, ""
	for {
		items, more, err := c.List(abi.StateListRequest{After: after, Values: true})
		require.NoError(t, err)
		require.True(t, len(items) < 2 || len(items) == 2 && items[0].Size+items[1].Size <= 10)
		for _, item := range items {
			require.Greater(t, item.Key, after)
			require.Len(t, item.Value, int(item.Size))
			got[item.Key], after = string(item.Value), item.Key
		}
		if !more {
			break
		}
	}
	require.Equal(t, want, got)
	each := map[string]string{}
	require.NoError(t, c.Each(abi.StateListRequest{Values: true},
		func(item sdk.Item) error { each[item.Key] = string(item.Value); return nil }))
	require.Equal(t, want, each)
	seen, enough := 0, errors.New("enough")
	err := c.Each(abi.StateListRequest{}, func(sdk.Item) error { seen++; return enough })
	require.Equal(t, len(want) > 0, errors.Is(err, enough), "an error ends it")
	require.Equal(t, min(1, len(want)), seen)
}

func requireLog(t *rapid.T, c *sdk.Call, log string, want []string) {
	for _, reverse := range []bool{false, true} {
		var got []string
		for from := int64(0); len(got) < len(want); {
			entries, last, err := c.Read(abi.StateReadRequest{Log: log, From: from, Reverse: reverse})
			require.NoError(t, err)
			require.Equal(t, int64(len(want)), last)
			require.NotEmpty(t, entries)
			for _, e := range entries {
				got = append(got, string(e.Data))
				from = e.Seq + 1
				if reverse {
					from = e.Seq - 1
				}
			}
		}
		if reverse {
			slices.Reverse(got)
		}
		require.Equal(t, want, got)
	}
}

func TestHTTPFollowsTheRouteTable(t *testing.T) {
	manifest := []byte(`{"manifest":1,"name":"x","version":"0.1.0","abi":"mh1","description":"d","providers":[{"name":"x","kind":"control"}],"config_schema":{},
		"routes":[{"name":"get","origin":"api","method":"GET","path":"/","class":"read"},{"name":"post","origin":"api","method":"POST","path":"/","class":"write"},
		{"name":"drop","origin":"api","method":"DELETE","path":"/","class":"admin"}]}`)
	for _, tt := range []struct {
		name, op, route string
		readOnly        bool
		code            abi.Code
	}{
		{"a read", abi.OpRetrieve, "get", false, ""},
		{"a write", abi.OpRecordEvent, "post", false, ""},
		{"a write while read-only", abi.OpRetrieve, "post", true, abi.CodeReadOnly},
		{"a read while read-only", abi.OpRetrieve, "get", true, ""},
		{"admin in a reset", abi.OpResetScope, "drop", false, ""},
		{"admin elsewhere", abi.OpRecordEvent, "drop", false, abi.CodeDenied},
		{"a route that is not in the table", abi.OpRetrieve, "other", false, abi.CodeDenied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := sdktest.New(t, sdktest.Options{Manifest: manifest, ReadOnly: tt.readOnly,
				HTTP: func(r sdktest.Request) sdktest.Reply {
					return sdktest.Reply{Status: 404, Body: "no " + r.Body}
				}})
			response, body, err := h.Call(tt.op, scope).HTTP(abi.HTTPRequest{Route: tt.route}, []byte("thing"))
			require.Equal(t, tt.code, abi.CodeOf(err))
			if err == nil {
				assert.Equal(t, int64(404), response.Status, "a backend's error is an answer")
				assert.Equal(t, "no thing", string(body))
				assert.Len(t, h.Sent, 1)
			}
		})
	}
}

func TestOnlyHeadersAndQueryKeysOfTheRouteAreSent(t *testing.T) {
	manifest := []byte(`{"manifest":2,"name":"x","version":"0.1.0","abi":"mh1","description":"d",
		"providers":[{"name":"x","kind":"control"}],"config_schema":{},
		"origins":[{"name":"api","from":"/url","protocol":"http"}],
		"secrets":[{"name":"key","from":"/key","headers":["X-Key"],"origin":"api"}],
		"routes":[{"name":"get","origin":"api","method":"GET","path":"/","headers":["accept"],"query":["limit"],"class":"read"}]}`)
	h := sdktest.New(t, sdktest.Options{Manifest: manifest, Config: `{"headers":{"X-Team":"blue"}}`,
		HTTP: func(sdktest.Request) sdktest.Reply { return sdktest.Reply{} }})
	for name, code := range map[string]abi.Code{"Accept": "", "x-key": "", "x-team": "", "cookie": abi.CodeDenied} {
		_, _, err := h.Call(abi.OpRetrieve, scope).HTTP(abi.HTTPRequest{Route: "get",
			Headers: map[string]string{name: "1"}}, nil)
		assert.Equal(t, code, abi.CodeOf(err), name)
	}
	for key, code := range map[string]abi.Code{"limit": "", "Limit": abi.CodeDenied} {
		_, _, err := h.Call(abi.OpRetrieve, scope).HTTP(abi.HTTPRequest{Route: "get",
			Query: []abi.QueryParam{{Key: key, Value: "1"}}}, nil)
		assert.Equal(t, code, abi.CodeOf(err), key)
	}
}

func TestScriptAnswersInOrder(t *testing.T) {
	h := sdktest.New(t, sdktest.Options{HTTP: sdktest.Script(t,
		sdktest.Step{Route: "a", Reply: sdktest.Reply{Body: "1"}},
		sdktest.Step{Route: "b", Reply: sdktest.Reply{Err: abi.NewError(abi.CodeTimeout, "too slow")}})})
	c := h.Call(abi.OpRetrieve, scope)
	response, body, err := c.HTTP(abi.HTTPRequest{Route: "a"}, nil)
	require.NoError(t, err)
	assert.Equal(t, int64(200), response.Status)
	assert.Equal(t, "1", string(body))
	_, _, err = c.HTTP(abi.HTTPRequest{Route: "b"}, nil)
	assert.ErrorIs(t, err, &abi.Error{Code: abi.CodeTimeout})
}

func TestConfigLogTokensAndDeadline(t *testing.T) {
	h := sdktest.New(t, sdktest.Options{Provider: "notes", Config: `{"n":3}`, Secrets: []string{"key"}, DeadlineMS: 70})
	c := h.Call(abi.OpHealth, scope)
	config, err := c.Config()
	require.NoError(t, err)
	assert.Equal(t, &abi.GuestConfig{Provider: "notes", Kind: abi.KindControl, Tokenizer: "bytes4",
		Config: abi.Raw(`{"n":3}`), Secrets: []string{"key"}}, config)
	assert.Equal(t, int64(70), c.Remaining())
	c.Log(abi.LogWarn, "careful")
	assert.Equal(t, []sdktest.Line{{Level: abi.LogWarn, Text: "careful"}}, h.Logs)
	assert.Equal(t, int64(2), c.CountTokens("12345"))
	prefix, tokens := c.FitTokens("123456789", 2)
	assert.Equal(t, "12345678", prefix)
	assert.Equal(t, int64(2), tokens)
	prefix, _ = c.FitTokens("text", -1)
	assert.Empty(t, prefix)
}

func TestSettingsAreParsedOnceForAnInstance(t *testing.T) {
	type settings struct{ text string }
	h := sdktest.New(t, sdktest.Options{Config: `{"n":3}`})
	parsed := 0
	parse := func(config *abi.GuestConfig) (*settings, error) {
		if parsed++; parsed == 1 {
			return nil, errors.New("not yet")
		}
		return &settings{string(config.Config)}, nil
	}
	_, err := sdk.Settings(h.Call(abi.OpHealth, scope), parse)
	require.Error(t, err)
	for range 3 {
		s, err := sdk.Settings(h.Call(abi.OpHealth, scope), parse)
		require.NoError(t, err)
		assert.Equal(t, `{"n":3}`, s.text)
	}
	assert.Equal(t, 2, parsed)
}

const boltManifest = `{"manifest":1,"name":"graph","version":"1","abi":"mh1","providers":[{"name":"graph","kind":"architecture"}],"config_schema":{},
 "origins":[{"name":"api","from":"/url","protocol":"http"},{"name":"bolt","from":"/bolt","protocol":"bolt"}],
 "routes":[{"name":"search","origin":"api","method":"GET","path":"/search","class":"read"},
  {"name":"facts","origin":"bolt","statement":"MATCH (n {group_id: $gid}) RETURN n.name AS name","class":"read"},
  {"name":"wipe","origin":"bolt","statement":"MATCH (n {group_id: $gid}) DETACH DELETE n","class":"admin"}]}`

func TestBoltRunsTheManifestsStatements(t *testing.T) {
	h := sdktest.New(t, sdktest.Options{Manifest: []byte(boltManifest), Bolt: func(q sdktest.Query) sdktest.Rows {
		return sdktest.Rows{Columns: []string{"name"}, Rows: []string{`["Oslo"]`, `[null]`},
			Counters: map[string]int64{"nodes_deleted": 1}, Server: "Neo4j/5.26.2"}
	}})
	head, rows, err := h.Call(abi.OpRetrieve, scope).Bolt("facts", []byte(`{"gid":"g"}`))
	require.NoError(t, err)
	assert.Equal(t, &abi.BoltResult{Columns: []string{"name"}, Rows: 2, Counters: map[string]int64{"nodes_deleted": 1},
		Server: "Neo4j/5.26.2"}, head)
	assert.Equal(t, "[\"Oslo\"]\n[null]\n", string(rows))
	assert.Equal(t, []sdktest.Query{{Route: "facts", Statement: "MATCH (n {group_id: $gid}) RETURN n.name AS name",
		Params: `{"gid":"g"}`}}, h.Ran)
	_, _, err = h.Call(abi.OpResetScope, scope).Bolt("wipe", nil)
	require.NoError(t, err)
	assert.Equal(t, "{}", h.Ran[1].Params)
}

func TestBoltRefusals(t *testing.T) {
	locked := abi.NewError(abi.CodeUnauthenticated, "no").WithReason("Neo.ClientError.Security.Unauthorized")
	h := sdktest.New(t, sdktest.Options{Manifest: []byte(boltManifest),
		Bolt: func(sdktest.Query) sdktest.Rows { return sdktest.Rows{Err: locked} }})
	for name, tt := range map[string]struct {
		route, params string
		readOnly      bool
		code          abi.Code
	}{
		"a route that is not there":        {"fact", "", false, abi.CodeDenied},
		"a route of http":                  {"search", "", false, abi.CodeDenied},
		"admin in a retrieval":             {"wipe", "", false, abi.CodeDenied},
		"anything but read when read-only": {"wipe", "", true, abi.CodeReadOnly},
		"parameters that are no object":    {"facts", "[1]", false, abi.CodeInvalidArgument},
		"what the database says":           {"facts", "{}", false, abi.CodeUnauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			h.ReadOnly = tt.readOnly
			_, _, err := h.Call(abi.OpRetrieve, scope).Bolt(tt.route, []byte(tt.params))
			assert.Equal(t, tt.code, abi.CodeOf(err))
		})
	}
	assert.Len(t, h.Ran, 1, "only the last one reached the database")
	_, _, err := h.Call(abi.OpRetrieve, scope).HTTP(abi.HTTPRequest{Route: "facts"}, nil)
	assert.Equal(t, abi.CodeDenied, abi.CodeOf(err), "a bolt route is no HTTP route")
	_, _, err = sdktest.New(t, sdktest.Options{}).Call(abi.OpRetrieve, scope).Bolt("any", nil)
	assert.Equal(t, abi.CodeUnavailable, abi.CodeOf(err), "no database")
}
