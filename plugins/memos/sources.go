package main

import (
	"github.com/go-faster/jx"

	"github.com/memhost/memhost/abi"
)

// source is where a memory came from: one message of an event.
type source struct {
	kind, role, chatTime, messageID, content string
}

// sourceDepth bounds the unpacking. Three layers are known; a text of a user that looks like one more does no harm.
const sourceDepth = 8

// readSources decodes metadata.sources in all its shapes:
//
//	neo4j-community              [{"type":"chat","role":...}]
//	neo4j, search and by id      [{"type":"doc","role":null,"content":"\"{\\\"type\\\":\\\"chat\\\"...}\""}]: content is a JSON text that holds a JSON text
//	neo4j, POST get_memory       ["\"{\\\"type\\\":...}\""]: the same without the object around it
//	neo4j, after async           the same, and inside it a doc once more
//
// So a text that parses is parsed, and a doc whose content parses is left for what is in it, until neither holds.
func readSources(raw jx.Raw) []source {
	var list []source
	d := jx.DecodeBytes(raw)
	switch d.Next() {
	case jx.Array:
		_ = d.Arr(func(d *jx.Decoder) error {
			one, err := d.Raw()
			if err == nil {
				if s, ok := unpackSource(one, sourceDepth); ok {
					list = append(list, s)
				}
			}
			return err
		})
	case jx.String:
		if text, err := d.Str(); err == nil && abi.ValidJSON([]byte(text)) && text != "" && text[0] == '[' {
			return readSources(jx.Raw(text))
		}
	}
	return list
}

// unpackSource is the innermost source of a value; false when there is none.
func unpackSource(raw jx.Raw, depth int) (source, bool) {
	d := jx.DecodeBytes(raw)
	switch d.Next() {
	case jx.String:
		text, err := d.Str()
		if err != nil || depth == 0 || !abi.ValidJSON([]byte(text)) {
			return source{}, false
		}
		return unpackSource(jx.Raw(text), depth-1)
	case jx.Object:
		s, err := readSource(d)
		if err != nil {
			return source{}, false
		}
		if s.kind == "doc" && s.messageID == "" && depth > 0 && abi.ValidJSON([]byte(s.content)) {
			if inner, ok := unpackSource(jx.Raw(s.content), depth-1); ok {
				return inner, true
			}
		}
		return s, true
	}
	return source{}, false
}

func readSource(d *jx.Decoder) (s source, err error) {
	err = d.Obj(func(d *jx.Decoder, key string) error {
		switch key {
		case "type":
			return readText(d, &s.kind)
		case "role":
			return readText(d, &s.role)
		case "chat_time":
			return readText(d, &s.chatTime)
		case "message_id":
			return readText(d, &s.messageID)
		case "content":
			return readText(d, &s.content)
		}
		return d.Skip()
	})
	return s, err
}
