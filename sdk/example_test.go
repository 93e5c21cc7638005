package sdk_test

import (
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
)

// exampleTB stops an example if a call fails. A test passes its *testing.T instead.
type exampleTB struct{}

func (exampleTB) Helper()                      {}
func (exampleTB) Cleanup(func())               {}
func (exampleTB) Errorf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (exampleTB) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

var (
	ann   = abi.MemoryScope{RunID: "run", PersonaID: "ann"}
	rules = sdk.IDRules{Plain: sdk.AlphaNumeric, Escape: '_', Separator: '-', Max: 128}
)

// A memory of one log: record appends, retrieve shows the newest entries that fit.
func Example() {
	record := func(c *sdk.Call, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
		if _, err := c.Append("turns", []byte(*e.Messages[0].Content)); err != nil {
			return nil, err
		}
		return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted, NativeIDsKind: abi.NativeIDsNone}, nil
	}
	retrieve := func(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
		entries, _, err := c.Read(abi.StateReadRequest{Log: "turns"})
		if err != nil {
			return nil, err
		}
		var blocks []sdk.Block
		for i, e := range entries {
			blocks = append(blocks, sdk.Block{Item: i, Text: string(e.Data)})
		}
		element := sdk.Context{Backend: "turns", Scope: c.Scope, Kind: abi.KindControl}
		return &abi.RetrieveResult{FormattedContext: element.FitNewest(c, blocks, r.Budget).Text}, nil
	}

	h := sdktest.New(exampleTB{}, sdktest.Options{Provider: "turns"})
	text := "I moved to Lyon."
	event := &abi.MemoryEvent{EventID: "e1", RunID: "run", UserID: "ann", SessionID: "s", TurnID: "1",
		Timestamp: "2026-03-02T09:00:00Z", Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}}
	if _, err := sdktest.Do(h, abi.OpRecordEvent, ann, record, event); err != nil {
		fmt.Println(err)
	}
	result, err := sdktest.Do(h, abi.OpRetrieve, ann, retrieve, &abi.RetrieveRequest{Query: "Where?", Scope: ann,
		SessionID: "t"})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(result.FormattedContext)
	// Output:
	// <memory-context backend="turns" scope="run/ann" condition_kind="control">
	// I moved to Lyon.
	// </memory-context>
}

// Ids for a backend that allows letters, digits, "_" and "-". Two different scopes never get the same id.
func ExampleNativeID() {
	fmt.Println(sdk.NativeID(rules, "run", "ann"))
	fmt.Println(sdk.NativeID(rules, "run-ann", ""))
	fmt.Println(sdk.NativeID(rules, "run", "ann@home"))
	// Output:
	// run-ann
	// run_2dann-
	// run-ann_40home
}

func ExampleShortIDs() {
	fmt.Println(sdk.ShortIDs([]string{"8be2a280-1d1c-4d0a-9d3e-1f0e8e9b7c11", "5f0c3b9e-7a3d-4f1e-8a55-0c4d2b1f6e90"}))
	// Output:
	// [8be2a280 5f0c3b9e]
}

// The error for a backend's answer says whether to retry, and keeps the answer itself.
func ExampleFailure() {
	e := sdk.Failure("search", &abi.HTTPResponse{Status: 429, Headers: map[string]string{"retry-after": "12"}},
		[]byte(`{"detail":"slow down"}`), "slow down")
	fmt.Println(e.Code, e.Retryable, *e.RetryAfterMS, e.Native.Body)
	// Output:
	// rate_limited true 12000 {"detail":"slow down"}
}

func ExampleCodeOfStatus() {
	for _, status := range []int64{401, 404, 503, 418} {
		fmt.Println(status, sdk.CodeOfStatus(status))
	}
	// Output:
	// 401 unauthenticated
	// 404 not_found
	// 503 unavailable
	// 418 backend
}

// The element escapes its content, so that a memory cannot end it.
func ExampleContext_Wrap() {
	x := sdk.Context{Backend: "notes", Scope: ann}
	fmt.Println(x.Wrap(sdk.EscapeText("</memory-context> I like tea.") + "\n"))
	// Output:
	// <memory-context backend="notes" scope="run/ann">
	// <\/memory-context> I like tea.
	// </memory-context>
}

// The first blocks that fit into a budget, in the frame compact.
func ExampleContext_FitFirst() {
	c := sdktest.New(exampleTB{}, sdktest.Options{}).Call(abi.OpRetrieve, ann)
	x := sdk.Context{Backend: "notes", Scope: ann, Frame: abi.FrameCompact}
	blocks := []sdk.Block{{Item: 0, Text: "I moved to Lyon.", When: "2026-03-01", Who: "user"},
		{Item: 1, Text: "I have a cat.", When: "2026-03-02", Who: "user"},
		{Item: 2, Text: "It is called Zorvex, and it sleeps all day long.", When: "2026-03-02", Who: "user"}}
	most := int64(40)
	fitted := x.FitFirst(c, blocks, abi.ContextBudget{MaxTokens: &most})
	fmt.Println(fitted.Text)
	fmt.Println(fitted.End, "of", len(blocks), "blocks, truncated:", fitted.Truncated)
	// Output:
	// <memory-context backend="notes" scope="run/ann" times="UTC">
	// m1 2026-03-01 user: I moved to Lyon.
	// m2 2026-03-02 user: I have a cat.
	// </memory-context>
	// 2 of 3 blocks, truncated: true
}

// Rows of a Bolt result, column by column.
func ExampleEachRow() {
	err := sdk.EachRow([]byte("[\"Oslo\",2]\n[\"Lyon\",1]\n"), func(row []byte) error {
		return sdk.EachColumn(row, func(i int, d *wirejson.Decoder) error {
			if i > 0 {
				return d.Skip()
			}
			name, err := d.Str()
			fmt.Println(name)
			return err
		})
	})
	fmt.Println(err)
	// Output:
	// Oslo
	// Lyon
	// <nil>
}

// Which events a request covers, for a provider that keeps their sessions and times.
func ExampleForgets() {
	r := &abi.ForgetRequest{Scope: ann, SessionID: "monday"}
	fmt.Println(sdk.Forgets(r, "monday", "2026-03-02T09:00:00Z"), sdk.Forgets(r, "tuesday", "2026-03-03T09:00:00Z"))
	// Output:
	// true false
}

// Writing state that has changed since it was read is a conflict.
func ExampleCall_Put() {
	c := sdktest.New(exampleTB{}, sdktest.Options{}).Call(abi.OpRecordEvent, ann)
	fmt.Println(c.Put("city", []byte("Lyon"), 0)) // 0: the key must not exist
	city, version, err := c.Get("city")
	fmt.Println(string(city), err)
	fmt.Println(c.Put("city", []byte("Nice"), version))
	fmt.Println(abi.CodeOf(c.Put("city", []byte("Oslo"), version)))
	// Output:
	// <nil>
	// Lyon <nil>
	// <nil>
	// conflict
}
