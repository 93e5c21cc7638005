package cli

import (
	"fmt"

	"github.com/memhost/memhost/abi"
)

// costs is a line about a retrieval: provider, size and time.
func costs(result *abi.RetrieveResult, where string) string {
	t := result.Trace
	if t == nil {
		t = &abi.Trace{}
	}
	line := printable(t.BackendName) + ": "
	if result.FormattedContext == "" {
		line += "nothing"
	} else if t.TokenCount != nil {
		line += fmt.Sprintf("%d tokens (%s)", *t.TokenCount, t.Tokenizer)
	} else {
		line += fmt.Sprintf("%d bytes", len(result.FormattedContext))
	}
	if t.RetrievedCount != nil {
		line += ", " + count(int(*t.RetrievedCount), "item")
	}
	line += fmt.Sprintf(", %.1f ms", t.LatencyMS)
	if where != "" {
		line += ", " + where
	}
	return line
}
