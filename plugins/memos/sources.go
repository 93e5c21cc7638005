package main

import (
	"github.com/memhost/memhost/abi/jsontext"

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
func readSources(d *jsontext.Decoder) (list []source, err error) {
	switch d.Next() {
	case jsontext.Array:
		err = d.Arr(func(d *jsontext.Decoder) error {
			s, ok, err := unpackSource(d, sourceDepth)
			if ok {
				list = append(list, s)
			}
			return err
		})
		return list, err
	case jsontext.String:
		text, err := d.Str()
		if inner := []byte(text); err == nil && text != "" && text[0] == '[' && abi.ValidJSON(inner) {
			return readSources(jsontext.DecodeBytes(inner))
		}
		return nil, err
	}
	return nil, d.Skip()
}

// unpackSource is the innermost source of a value; false when there is none. The error is of d alone: a text inside that cannot be read is no source.
func unpackSource(d *jsontext.Decoder, depth int) (s source, ok bool, err error) {
	switch d.Next() {
	case jsontext.String:
		text, err := d.Str()
		if err == nil && depth > 0 {
			s, ok = unpackText(text, depth-1)
		}
		return s, ok, err
	case jsontext.Object:
		if s, err = readSource(d); err != nil {
			return s, false, err
		}
		if s.kind == "doc" && s.messageID == "" && depth > 0 {
			if inner, ok := unpackText(s.content, depth-1); ok {
				return inner, true, nil
			}
		}
		return s, true, nil
	}
	return s, false, d.Skip()
}

func unpackText(text string, depth int) (source, bool) {
	if text == "" || text[0] != '{' && text[0] != '"' || !abi.ValidJSON([]byte(text)) {
		return source{}, false
	}
	s, ok, err := unpackSource(jsontext.DecodeStr(text), depth)
	return s, ok && err == nil
}

func readSource(d *jsontext.Decoder) (s source, err error) {
	err = d.Obj(func(d *jsontext.Decoder, key string) error {
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
