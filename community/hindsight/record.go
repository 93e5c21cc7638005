package main

import (
	"strings"

	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// recordEvent lets Hindsight retain a turn as a document, in the background. The plugin chooses the operation's id, so
// a repeated request finds the existing operation.
func recordEvent(c *sdk.Call, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	bank, err := bankOf(c)
	if err != nil {
		return nil, err
	}
	receipt := &abi.WriteReceipt{EventID: e.EventID, NativeIDsKind: abi.NativeIDsNone}
	content := turnText(e)
	if text := strings.ReplaceAll(content, "\x00", ""); len(text) < len(content) {
		content = text
		receipt.Warnings = append(receipt.Warnings, "nul_removed: PostgreSQL cannot store U+0000; it was left out")
	}
	if strings.TrimSpace(content) == "" { // Hindsight would make a document without memories
		receipt.Status = abi.StatusNotRetained
		return receipt, nil
	}
	operation := operationOf(bank, e.EventID)
	answer, err := ask(c, request{route: "retain", body: retainBody(e, content, operation)})
	if err != nil {
		return nil, err
	}
	operationID := ""
	err = fields(answer, map[string]func(*wirejson.Decoder) error{
		"operation_id": func(d *wirejson.Decoder) error { return sdk.ReadText(d, &operationID) }})
	if err != nil || operationID == "" {
		return nil, unusable("retain", answer)
	}
	receipt.Status, receipt.Markers = abi.StatusQueued, []string{marker(operationID, e.EventID)}
	receipt.NativeIDs, receipt.NativeIDsKind = []string{documentOf(e.EventID)}, abi.NativeIDsFinal
	return receipt, nil
}

// turnText is a turn as one text: a line for each message, with its speaker.
func turnText(e *abi.MemoryEvent) string {
	var lines []string
	for _, m := range e.Messages {
		who := m.Name
		if who == "" {
			who = string(m.Role)
		}
		if m.Content != nil && strings.TrimSpace(*m.Content) != "" {
			lines = append(lines, who+": "+*m.Content)
		}
		for _, call := range m.ToolCalls {
			lines = append(lines, who+" calls "+call.Name+": "+call.Arguments)
		}
	}
	return strings.Join(lines, "\n")
}

// retainBody is the request that retains a turn. Tags are what a recall can filter by.
func retainBody(e *abi.MemoryEvent, content, operation string) []byte {
	var j wirejson.Encoder
	j.ObjStart()
	j.FieldStart("items")
	j.ArrStart()
	j.ObjStart()
	for _, f := range [][2]string{{"content", content}, {"timestamp", e.Timestamp}, {"document_id", documentOf(e.EventID)}} {
		j.FieldStart(f[0])
		j.Str(f[1])
	}
	j.FieldStart("metadata")
	j.ObjStart()
	for _, f := range [][2]string{{"event_id", e.EventID}, {"session_id", e.SessionID}, {"timestamp", e.Timestamp}} {
		j.FieldStart(f[0])
		j.Str(f[1])
	}
	j.ObjEnd()
	writeTags(&j, e.Scenario, e.Context, e.Attribute)
	j.ObjEnd()
	j.ArrEnd()
	j.FieldStart("async")
	j.Bool(true)
	j.FieldStart("operation_id")
	j.Str(operation)
	j.ObjEnd()
	return j.Bytes()
}

// writeTags writes the labels as tags, and says whether there are any.
func writeTags(j *wirejson.Encoder, scenario, context, attribute string) bool {
	if scenario == "" && context == "" && attribute == "" {
		return false
	}
	j.FieldStart("tags")
	j.ArrStart()
	for _, f := range [][2]string{{"scenario", scenario}, {"context", context}, {"attribute", attribute}} {
		if f[1] != "" {
			j.Str(f[0] + ":" + f[1])
		}
	}
	j.ArrEnd()
	return true
}
