package abi

import (
	"encoding/json"
	"strings"
	"testing"
)

// The benchmarks use documents of about 3 KB, the size of a turn or of a retrieval of twelve items.

func benchEvent() *MemoryEvent {
	text := strings.Repeat("My cat is called Zorvex and he sleeps on the \"red\" sofa.\n", 5)
	x := &MemoryEvent{EventID: "e-0001", RunID: "user_a_c1", UserID: "user_a", SessionID: "s-17", TurnID: "t-3",
		Timestamp: "2026-03-01T09:30:00.123Z", Scenario: "travel", Metadata: map[string]Raw{"seed": Raw("7"),
			"tags": Raw(`["a","b"]`)}}
	for i := range 8 {
		m := Message{Role: RoleUser, Content: &text}
		if i%2 == 1 {
			m = Message{Role: RoleAssistant, Content: &text, ToolCalls: []ToolCall{{ID: "call_1", Name: "search",
				Arguments: `{"q":"cat"}`}}}
		}
		x.Messages = append(x.Messages, m)
	}
	return x
}

func benchResult() *RetrieveResult {
	x := &RetrieveResult{FormattedContext: strings.Repeat("- The cat is called Zorvex.\n", 12),
		Trace: &Trace{Operation: OpRetrieve, BackendName: "mem0", ConditionKind: KindArchitecture,
			Scope:     MemoryScope{RunID: "r", PersonaID: "p"},
			LatencyMS: 12.25, Tokenizer: "bytes4", ResultState: ResultResults, Warnings: []string{},
			IO:        []IO{{Route: "search", Class: "read", Status: 200, MS: 11.5, BytesOut: 120, BytesIn: 1500}},
			BackendMS: 11.5,
			PluginMS:  0.5, HostMS: 0.25}}
	score := 0.8125
	var body []byte
	for i := range 12 {
		body = append(body, `,{"id":"6c1b6f0e-3c55-4a11-9a77","memory":"The cat is called Zorvex.","score":0.8125}`...)
		x.Evidence = append(x.Evidence, Evidence{Pointer: "/calls/0/body/results/" + itoa(i), Rank: int64(i + 1),
			NativeID: "6c1b6f0e-3c55-4a11-9a77", Score: &score, CreatedAt: "2026-03-01T09:30:00Z"})
	}
	x.Raw.Calls = []RawCall{{Route: "search", Body: Raw(`{"results":[` + string(body[1:]) + `]}`)}}
	return x
}

func BenchmarkDecodeEvent(b *testing.B)  { benchDecode(b, benchEvent(), new(MemoryEvent)) }
func BenchmarkDecodeResult(b *testing.B) { benchDecode(b, benchResult(), new(RetrieveResult)) }
func BenchmarkEncodeEvent(b *testing.B)  { benchEncode(b, benchEvent()) }
func BenchmarkEncodeResult(b *testing.B) { benchEncode(b, benchResult()) }

func benchDecode(b *testing.B, from Encodable, into Decodable) {
	data := Marshal(from)
	run := func(name string, decode func() error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("abi", func() error { return Unmarshal(data, into) })
	run("abi_strict", func() error { return UnmarshalStrict(data, into) })
	run("encoding_json", func() error { return json.Unmarshal(data, into) })
}

func benchEncode(b *testing.B, from Encodable) {
	b.Run("abi", func(b *testing.B) {
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			buf = AppendJSON(buf[:0], from)
		}
		b.SetBytes(int64(len(buf)))
	})
	b.Run("encoding_json", func(b *testing.B) {
		n := 0
		b.ReportAllocs()
		for b.Loop() {
			data, err := json.Marshal(from)
			if err != nil {
				b.Fatal(err)
			}
			n = len(data)
		}
		b.SetBytes(int64(n))
	})
}
