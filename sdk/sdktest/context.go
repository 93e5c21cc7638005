package sdktest

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// FormattedContent returns the content of a formatted context of blocks in a frame, without the element around it.
func FormattedContent(t TB, frame abi.Frame, blocks ...sdk.Block) string {
	t.Helper()
	x := sdk.Context{Backend: "test", Frame: frame}
	scope := abi.MemoryScope{RunID: "run", PersonaID: "persona"}
	text := x.FitFirst(New(t, Options{}).Call(abi.OpFormatContext, scope), blocks, abi.ContextBudget{}).Text
	_, text, _ = strings.Cut(text, "\n")
	return strings.TrimSuffix(text, "</"+abi.ContextTag+">")
}
