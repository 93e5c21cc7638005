package server

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
)

// The examples of the document. They are Go values, so that they have the type that they illustrate.

func exampleScope() abi.MemoryScope {
	return abi.MemoryScope{RunID: "user_a_c1", PersonaID: "user_a"}
}

func exampleEvent() *abi.MemoryEvent {
	question, reply := "My cat is called Zorvex.", "What a name! I will remember it."
	return &abi.MemoryEvent{EventID: "e-1", RunID: "user_a_c1", UserID: "user_a", SessionID: "s-1", TurnID: "1",
		Timestamp: "2026-03-01T09:30:00Z",
		Messages:  []abi.Message{{Role: abi.RoleUser, Content: &question}, {Role: abi.RoleAssistant, Content: &reply}},
		Metadata:  map[string]abi.Raw{"channel": abi.Raw(`"chat"`)}}
}

func exampleTrace(operation string) *abi.Trace {
	return &abi.Trace{Operation: operation, BackendName: "mem0", ConditionKind: abi.KindArchitecture,
		Scope: exampleScope(), Generation: 1, LatencyMS: 12.5,
		Tokenizer: "bytes4", Warnings: []string{},
		IO:        []abi.IO{{Route: "search", Class: "read", Status: 200, MS: 11.9, BytesOut: 96, BytesIn: 412}},
		BackendMS: 11.9, PluginMS: 0.4, HostMS: 0.2}
}

func exampleCluster() *report.Cluster {
	left := int64(14200)
	return &report.Cluster{Store: "postgres", Identity: "6f6a5c1e-3c0e-4c52-9a57-0a3bd4a5f8b1", Incarnation: 1, Commits: 4711,
		Hosts:    []report.ClusterHost{{Name: "a/12", Version: "0.2.0", Began: "2026-03-01T09:00:02Z", LeftMS: &left, Self: true}},
		Provider: "mem0", Module: strings.Repeat("0", 64), Generation: 3, ServingSince: "2026-03-01T09:00:03Z",
		LateWrites: []report.LateWrite{}}
}

func exampleReceipt() *abi.WriteReceipt {
	one := int64(1)
	return &abi.WriteReceipt{EventID: "e-1", Status: abi.StatusCommitted, NativeIDs: []string{"mem_7"},
		NativeIDsKind: abi.NativeIDsFinal, StoredCount: &one,
		Markers: []string{}, Warnings: []string{}, LatencyMS: 12.5}
}

func exampleReceipts() *abi.BatchReceipts {
	e := abi.NewError(abi.CodeInvalidArgument, `events[1].timestamp: "yesterday" is not an RFC 3339 time with zone, such as 2026-03-01T09:30:00Z`)
	e.Operation = abi.OpRecordEvents
	return &abi.BatchReceipts{Receipts: []abi.ReceiptOrError{{Receipt: exampleReceipt()}, {EventID: "e-2", Error: e}}}
}

func exampleRetrieve() *abi.RetrieveRequest {
	tokens := int64(800)
	return &abi.RetrieveRequest{Query: "What is my cat called?", Scope: exampleScope(), SessionID: "s-2",
		Budget: abi.ContextBudget{MaxTokens: &tokens}}
}

func exampleResult() *abi.RetrieveResult {
	score, found, tokens := 0.83, int64(1), int64(31)
	trace := exampleTrace(abi.OpRetrieve)
	trace.ResultState, trace.RetrievedCount, trace.TokenCount, trace.FilterMode = abi.ResultResults, &found, &tokens,
		abi.FilterHard
	return &abi.RetrieveResult{
		Raw: abi.RawResult{Calls: []abi.RawCall{{Route: "search",
			Body: abi.Raw(`{"results":[{"id":"mem_7","memory":"Has a cat called Zorvex","score":0.83}]}`)}}},
		FormattedContext: "<memory-context backend=\"mem0\" scope=\"user_a_c1/user_a\">\n- [mem_7, 0.83] Has a cat " +
			"called Zorvex\n</memory-context>",
		Evidence: []abi.Evidence{{Pointer: "/calls/0/body/results/0", Rank: 1, NativeID: "mem_7",
			Text: "Has a cat called Zorvex", Score: &score}},
		Trace: trace}
}

func exampleSetup() *abi.SetupReceipt {
	existed := false
	return &abi.SetupReceipt{Ready: true, Existed: &existed,
		NativeScope: map[string]string{"user_id": "user_a", "run_id": "user_a_c1"}, Warnings: []string{}}
}

func exampleReset() *abi.ResetReceipt {
	one := int64(1)
	return &abi.ResetReceipt{Status: abi.ResetDone, Removed: map[string]*int64{"memory": &one}, Remains: []string{},
		OldGeneration: 1, NewGeneration: 2, Warnings: []string{}}
}

func exampleMode() *abi.ModeReceipt {
	return &abi.ModeReceipt{ReadOnly: true, Since: "2026-03-01T10:00:00Z", EnforcedBy: "host",
		NotReady: []abi.MemoryScope{}}
}

func exampleHealth() *abi.BackendHealth {
	return &abi.BackendHealth{Status: abi.HealthOK, BackendName: "mem0", BackendVersion: "1.0.0", LatencyMS: 4.2,
		ConsistencyModel: "immediate",
		Isolation:        "filtered", PetObservability: "partial", Warnings: []string{}}
}

func exampleCapabilities() *report.Capabilities {
	return &report.Capabilities{Provider: "mem0", ConditionKind: abi.KindArchitecture,
		Operations:   abi.RequiredOperations(),
		Capabilities: []string{abi.OpFindEvent, abi.OpInventory}, NativeMemoryTypes: []string{"memory"},
		NativeIngestModes: []string{"infer"}, NativeQueryModes: []string{"search"}}
}

func exampleManifest() *report.RunManifest {
	return &report.RunManifest{Manifest: report.RunManifestVersion, Provider: "full_history", Condition: "full_history",
		ConditionKind: abi.KindControl,
		Module: report.RunModule{Name: "full_history", Version: "0.1.0",
			SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Bytes: 312_004,
			Source: "builtin"},
		ABI: abi.ABIMemhost, Engine: "wazero", ConfigHash: "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", Config: abi.Raw(`{}`),
		Tokenizer: "bytes4", Durability: "power", Capabilities: report.Capabilities{Provider: "full_history",
			ConditionKind: abi.KindControl, Operations: abi.RequiredOperations(),
			Capabilities: []string{abi.OpInventory}, NativeMemoryTypes: []string{"turn"}, NativeIngestModes: []string{},
			NativeQueryModes: []string{}},
		LoadGeneration: 1, ServingSince: "2026-03-01T09:00:00Z",
		Health: abi.BackendHealth{Status: abi.HealthOK, BackendName: "full_history", ConsistencyModel: "immediate",
			Isolation: "hard", PetObservability: "strong", Warnings: []string{}},
		HostVersion: "0.1.0", Steps: []report.RunStep{{Name: "load", Verdict: "pass", MS: 6.1},
			{Name: "health", Verdict: "pass", MS: 0.3}},
		Clock: "real", Seed: "7", Replicate: "2", Labels: map[string]string{"arm": "control"}, Smoke: "auto",
		Smokes: []report.SmokeVerdict{{Name: "isolation", Verdict: "pass", MS: 12.5}},
		Scopes: []report.ScopeMapping{{Scope: exampleScope(), Generation: 1,
			NativeScope: map[string]string{"state": "exp1-mara"}, Since: "2026-03-01T09:00:02Z"}}}
}

func exampleReadiness() *abi.BackendReadiness {
	return &abi.BackendReadiness{Status: abi.ReadinessReady, Method: "queue_status", Warnings: []string{},
		EventIDs: abi.ReadinessEventIDs{Pending: []string{}, Lost: []string{}, Failed: []string{}, Empty: []string{},
			Unknown: []string{}}}
}

func exampleInventory() *abi.Inventory {
	return &abi.Inventory{Kinds: []abi.InventoryKind{{Kind: "memory", Count: 1}}, Complete: true, Quiescent: true}
}

func exampleFeedback() *abi.MemoryFeedback {
	return &abi.MemoryFeedback{FeedbackID: "f-1", Scope: exampleScope(), SessionID: "s-2",
		Timestamp: "2026-03-01T11:00:00Z", Text: "The cat is called Zorvex, not Zorro.", NativeIDs: []string{"mem_7"}}
}

func exampleProvenance() *abi.Provenance {
	return &abi.Provenance{Items: []abi.ProvenanceItem{{Evidence: abi.Evidence{Rank: 1, NativeID: "mem_7",
		SourceEventIDs: []string{"e-1"}},
		Native: abi.Raw(`{"id":"mem_7","memory":"Has a cat called Zorvex"}`)}}}
}
