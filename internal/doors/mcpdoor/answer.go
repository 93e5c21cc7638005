package mcpdoor

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memhost/memhost/abi"
)

// textResult returns a result as text for a model and as fields for a program. Both say the same, because some clients
// show one and some the other.
func textResult(text string, fields map[string]any) *mcp.CallToolResult {
	fields["message"] = text
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: fields}
}

// failed returns an error as a result.
func failed(e *abi.Error) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: errorText(e)}},
		StructuredContent: map[string]any{"error": json.RawMessage(abi.Marshal(e))}}
}

// codeSlotError is the JSON-RPC code for an error of the slot, from the range reserved for servers; data holds the
// abi.Error.
const codeSlotError = -32010

// protocolError converts an error for requests that have no results with isError.
func protocolError(e *abi.Error) error {
	code := int64(codeSlotError)
	if e.Code == abi.CodeInvalidArgument || e.Code == abi.CodeDenied {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: errorText(e), Data: json.RawMessage(abi.Marshal(e))}
}

// errorText describes an error for a model: the code, what happened, what to do.
func errorText(e *abi.Error) string {
	var b strings.Builder
	b.WriteString(string(e.Code) + ": " + e.Message)
	if e.Native != nil && e.Native.Body != "" && !strings.Contains(e.Message, e.Native.Body) {
		b.WriteString("\nThe backend said: " + e.Native.Body)
	}
	if e.Hint != "" {
		b.WriteString("\nWhat to do: " + e.Hint)
	}
	return clip(b.String())
}

// clip cuts a text to the limit of an answer.
func clip(s string) string {
	if utf8.RuneCountInString(s) <= answerLimit {
		return s
	}
	return string([]rune(s)[:answerLimit]) + "..."
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
