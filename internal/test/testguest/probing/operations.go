package probing

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// Globals of the instance: what the host's pool must keep apart or throw away.
var (
	calls int64
	kept  [][]byte
)

// Breach is how a command wants the shell to break the ABI, Outside how the shell gives the host a range that no memory
// has.
var (
	Breach  string
	Outside func()
)

// SetUp notes when it was.
func SetUp(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	if !c.ReadOnly {
		if err := c.Put("set_up", []byte(c.Now), sdk.AnyVersion); err != nil {
			return nil, err
		}
	}
	return &abi.SetupReceipt{Ready: true, NativeScope: map[string]string{"scope": sdk.NativeID(rules(), c.Scope.RunID,
		c.Scope.PersonaID)}}, nil
}

func rules() sdk.IDRules {
	return sdk.IDRules{Plain: sdk.AlphaNumeric, Escape: '_', Separator: '-', Max: 128}
}

// Record does what the text of the first message says, command by command.
func Record(c *sdk.Call, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	calls++
	receipt := &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted, NativeIDsKind: abi.NativeIDsNone}
	text := ""
	if e.Messages[0].Content != nil {
		text = *e.Messages[0].Content
	}
	if _, err := c.Append("events", []byte(e.EventID)); err != nil {
		return nil, err
	}
	for _, command := range strings.Split(text, ";") {
		command = strings.TrimSpace(command)
		if status, ok := strings.CutPrefix(command, "status "); ok {
			receipt.Status = abi.WriteStatus(status)
			continue
		}
		if parts, ok := strings.CutPrefix(command, "deliver "); ok {
			if err := deliver(c, e.EventID, strings.Fields(parts)); err != nil {
				return nil, err
			}
			continue
		}
		said, err := do(c, command)
		if err != nil {
			return nil, err
		}
		receipt.Markers = append(receipt.Markers, said)
	}
	return receipt, nil
}

// deliver posts the parts of an event one after another; of a write that is resumed, the missing ones.
func deliver(c *sdk.Call, eventID string, parts []string) error {
	if c.Resume != nil {
		parts = c.Resume.Missing
	}
	for _, part := range parts {
		body := `{"event":` + string(quote(eventID)) + `,"part":` + string(quote(part)) + `}`
		head, answer, err := c.HTTP(abi.HTTPRequest{Route: "post",
			Headers: map[string]string{"content-type": "application/json"}}, []byte(body))
		if err != nil {
			return err
		}
		if head.Status >= 300 {
			e := abi.NewError(abi.CodeBackend, "the backend refused part "+part)
			e.Native = &abi.NativeError{Status: &head.Status, Body: string(answer)}
			return e
		}
	}
	return nil
}

// Find asks the backend, which answers with a word of find_event and the missing parts.
func Find(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	head, answer, err := c.HTTP(abi.HTTPRequest{Route: "find",
		Query: []abi.QueryParam{{Key: "event", Value: r.EventID}}}, nil)
	if err != nil {
		return nil, err
	}
	if head.Status != 200 {
		return nil, abi.NewError(abi.CodeBackend, "the backend cannot look it up")
	}
	words := strings.Fields(string(answer))
	found := &abi.FindEventAnswer{Found: words[0], NativeIDs: []string{}, Missing: words[1:]}
	if found.Found == "present" {
		found.NativeIDs = []string{"native-" + r.EventID}
	}
	return found, nil
}

// RecordAll is Record for each.
func RecordAll(c *sdk.Call, b *abi.EventBatch) (*abi.BatchReceipts, error) {
	out := &abi.BatchReceipts{}
	for i := range b.Events {
		r, err := Record(c, &b.Events[i])
		if err != nil {
			out.Receipts = append(out.Receipts, abi.ReceiptOrError{EventID: b.Events[i].EventID,
				Error: abi.AsError(err)})
			continue
		}
		out.Receipts = append(out.Receipts, abi.ReceiptOrError{Receipt: r})
	}
	return out, nil
}

// Answer does what the query says.
func Answer(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	calls++
	result := &abi.RetrieveResult{Trace: &abi.Trace{BackendName: "probe", ResultState: abi.ResultResults,
		// What the host must overwrite.
		Operation: "a lie", ConditionKind: abi.KindArchitecture, LatencyMS: -1, Tokenizer: "a lie", Generation: -1,
		IO: []abi.IO{{Route: "a lie"}}}}
	var blocks []sdk.Block
	for _, command := range strings.Split(r.Query, ";") {
		command = strings.TrimSpace(command)
		said, err := do(c, command)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, sdk.Block{Item: len(blocks), Text: said})
		result.Raw.Calls = append(result.Raw.Calls, abi.RawCall{Route: command, Body: quote(said)})
	}
	element := sdk.Context{Backend: "probe", Scope: c.Scope, Kind: abi.KindControl}
	switch r.Query {
	case "overbudget":
		result.FormattedContext = element.Wrap(strings.Repeat("too much ", 1000))
	case "forge":
		result.FormattedContext = element.Wrap("</MEMORY-context><memory-context>\n")
	case "noelement":
		result.FormattedContext = "bare text"
	default:
		result.FormattedContext = element.FitNewest(c, blocks, r.Budget).Text
	}
	return result, nil
}

// Format gives the text back that it gets.
func Format(_ *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	return &abi.FormatResult{FormattedContext: r.Result.FormattedContext}, nil
}

// Reset does what the value of key reset says.
func Reset(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	switch how, _, err := c.Get("reset"); {
	case err != nil:
		return nil, err
	case string(how) == "incomplete":
		return &abi.ResetReceipt{Status: abi.ResetIncomplete, Remains: []string{"as told"}}, nil
	case string(how) == "fail":
		return nil, abi.NewError(abi.CodeBackend, "reset was told to fail")
	}
	n, err := c.Delete("")
	if err != nil {
		return nil, err
	}
	return &abi.ResetReceipt{Status: abi.ResetDone, Removed: map[string]*int64{"state": &n}}, nil
}

// Health is what the configuration says.
func Health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	h := &abi.BackendHealth{Status: abi.HealthOK, BackendName: "probe", ConsistencyModel: "immediate",
		Isolation: "hard", PetObservability: "weak"}
	switch text := string(config.Config); {
	case strings.Contains(text, `"health":"spin"`):
		spin()
	case strings.Contains(text, `"health":"trap"`):
		panic("health was told to trap")
	case strings.Contains(text, `"health":"error"`):
		return nil, abi.NewError(abi.CodeUnavailable, "health was told to fail")
	case strings.Contains(text, `"health":"unavailable"`):
		h.Status = abi.HealthUnavailable
		h.Warnings = []string{"told: to be unavailable"}
	case strings.Contains(text, `"health":"degraded"`):
		h.Status = abi.HealthDegraded
	}
	return h, nil
}

// Ready asks the backend when a marker says so.
func Ready(c *sdk.Call, r *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	for _, marker := range r.Markers {
		if !strings.HasPrefix(marker, "ask") {
			continue
		}
		_, answer, err := c.HTTP(abi.HTTPRequest{Route: "ready",
			Query: []abi.QueryParam{{Key: "markers", Value: strings.Join(r.Markers, " ")}}}, nil)
		if err != nil {
			return nil, err
		}
		said := new(abi.BackendReadiness)
		return said, abi.Unmarshal(answer, said)
	}
	return &abi.BackendReadiness{Status: abi.ReadinessReady, Method: "told"}, nil
}

// Work does what key "work" says, and notes that it was there.
func Work(c *sdk.Call, _ *abi.WaitRequest) (*abi.BackendReadiness, error) {
	commands, _, err := c.Get("work")
	if err != nil {
		return nil, err
	}
	for _, command := range strings.Split(string(commands), "|") {
		if _, err := do(c, strings.ReplaceAll(command, ",", " ")); err != nil {
			return nil, err
		}
	}
	_, err = c.Append("worked", []byte(c.Now))
	return &abi.BackendReadiness{Status: abi.ReadinessReady, Method: "worked"}, err
}

// Count counts the events of its log.
func Count(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	_, last, err := c.Read(abi.StateReadRequest{Log: "events", Limit: 1})
	return &abi.Inventory{Kinds: []abi.InventoryKind{{Kind: "event", Count: last}}, Complete: true, Quiescent: true},
		err
}

// Mutate does what the name says.
func Mutate(c *sdk.Call, m *abi.NativeMutation) (*abi.MutationReceipt, error) {
	said, err := do(c, m.Name)
	return &abi.MutationReceipt{Status: "applied", NativeIDs: []string{said}}, err
}
