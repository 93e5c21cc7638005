package meter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
)

// contractRequest is a retrieve request of 3 KB with 12 items, as the host sends it.
func contractRequest() []byte {
	r := &abi.RetrieveRequest{Query: "what tea do I like?", Scope: abi.MemoryScope{RunID: "run", PersonaID: "persona"},
		SessionID: "s", Filters: map[string]abi.Raw{}}
	for i := range 12 {
		r.Filters[fmt.Sprint("item", i)] = abi.Raw(fmt.Sprintf(`{"id":"native-%d","text":%q,"score":0.%d,"at":"2026-01-02T03:04:05Z","valid":true,"tags":["a","b"]}`, i, strings.Repeat("memory ", 20), i+10))
	}
	return abi.AppendJSON(nil, &abi.Envelope{Op: abi.OpRetrieve, Body: abi.Marshal(r)})
}

// BenchmarkRewrite measures what rewriting adds to the load of a module.
func BenchmarkRewrite(b *testing.B) {
	original := read(b, "../../test/testguest/probe/probe.wasm")
	b.SetBytes(int64(len(original)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Rewrite(original); err != nil {
			b.Fatal(err)
		}
	}
}
