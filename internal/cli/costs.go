package cli

import (
	"fmt"

	"github.com/memhost/memhost/abi"
)

// Costs is a line about a retrieval: provider, size and time.
func Costs(result *abi.RetrieveResult, where string) string {
	t := result.Trace
	if t == nil {
		t = &abi.Trace{}
	}
	line := Printable(t.BackendName) + ": "
	if result.FormattedContext == "" {
		line += "nothing"
	} else if t.TokenCount != nil {
		line += fmt.Sprintf("%d tokens (%s)", *t.TokenCount, t.Tokenizer)
	} else {
		line += fmt.Sprintf("%d bytes", len(result.FormattedContext))
	}
	if t.RetrievedCount != nil {
		line += ", " + Count(int(*t.RetrievedCount), "item")
	}
	line += fmt.Sprintf(", %.1f ms", t.LatencyMS)
	if where != "" {
		line += ", " + where
	}
	return line
}
