package main

import (
	"strings"

	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// recordEvent adds a turn as a document, and has Cognee draw its graph in the background. A repeated request changes
// nothing: Cognee knows a document of the same name and content.
func recordEvent(c *sdk.Call, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	receipt := &abi.WriteReceipt{EventID: e.EventID, NativeIDsKind: abi.NativeIDsNone}
	content := turnText(e)
	if strings.TrimSpace(content) == "" {
		receipt.Status = abi.StatusNotRetained
		return receipt, nil
	}
	dataset, err := datasetOf(c)
	if err != nil {
		return nil, err
	}
	answer, err := ask(c, request{route: "add", form: addForm(dataset, e, content)})
	if err != nil {
		return nil, err
	}
	id, err := addedID(answer)
	if err != nil || id == "" {
		return nil, unusable("add", answer)
	}
	var j wirejson.Encoder
	j.ObjStart()
	j.FieldStart("dataset_ids")
	j.ArrStart()
	j.Str(dataset)
	j.ArrEnd()
	j.FieldStart("run_in_background")
	j.Bool(true)
	j.ObjEnd()
	if _, err := ask(c, request{route: "cognify", json: j.Bytes()}); err != nil {
		return nil, err
	}
	receipt.Status, receipt.Markers = abi.StatusQueued, []string{e.EventID}
	receipt.NativeIDs, receipt.NativeIDsKind = []string{id}, abi.NativeIDsFinal
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

// heading is the first line of a document. Cognee takes two documents of one dataset with the same content for one, so
// the content has the event in it.
func heading(document, timestamp string) string { return "[" + document + " " + timestamp + "]\n" }

// addForm is the request that adds a turn: a file, because Cognee reads other texts as paths and addresses too.
func addForm(dataset string, e *abi.MemoryEvent, content string) *form {
	var j wirejson.Encoder
	j.ArrStart()
	j.ObjStart()
	for _, f := range [][2]string{{"event_id", e.EventID}, {"session_id", e.SessionID}, {"timestamp", e.Timestamp}} {
		j.FieldStart(f[0])
		j.Str(f[1])
	}
	j.ObjEnd()
	j.ArrEnd()
	name := documentOf(e.EventID)
	content = heading(name, e.Timestamp) + content
	f := newForm(content)
	f.field("datasetId", dataset)
	f.field("external_metadata", string(j.Bytes()))
	f.file("data", name+".txt", content)
	return f
}

// addedID is the id that Cognee gave the document, or has given it before.
func addedID(body []byte) (id string, err error) {
	err = wirejson.DecodeBytes(body).Obj(func(d *wirejson.Decoder, key string) error {
		if key != "data_ingestion_info" || d.Next() != wirejson.Array {
			return d.Skip()
		}
		return d.Arr(func(d *wirejson.Decoder) error {
			return d.Obj(func(d *wirejson.Decoder, key string) error {
				if key != "data_id" {
					return d.Skip()
				}
				return sdk.ReadText(d, &id)
			})
		})
	})
	return id, err
}
