package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
)

// source is where a memory came from: one message of an event.
type source struct {
	kind, chatTime, messageID, content string
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
		all, err := d.ArrIter()
		for err == nil && all.Next() {
			var s source
			var ok bool
			if s, ok, err = unpackSource(d, sourceDepth); ok {
				list = append(list, s)
			}
		}
		if err == nil {
			err = all.Err()
		}
		return list, err
	case jsontext.String:
		text, err := d.Str()
		if err != nil || text == "" || text[0] != '[' {
			return nil, err
		}
		inner := bounded(text)
		if list, err = readSources(inner); err != nil || !inner.AtEnd() {
			return nil, nil // a text that is no JSON
		}
		return list, nil
	}
	return nil, d.Skip()
}

// bounded reads a text inside an answer, which may be as deep as the answer.
func bounded(text string) *jsontext.Decoder { return jsontext.DecodeStr(text).Limit(abi.MaxDepth) }

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
		if err = s.read(d); err != nil {
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

// unpackText is unpackSource of a text that may be JSON.
func unpackText(text string, depth int) (source, bool) {
	if text == "" || text[0] != '{' && text[0] != '"' {
		return source{}, false
	}
	d := bounded(text)
	s, ok, err := unpackSource(d, depth)
	return s, ok && err == nil && d.AtEnd()
}

func (s *source) read(d *jsontext.Decoder) error {
	fields, err := d.ObjIter()
	for err == nil && fields.Next() {
		var into *string
		switch fields.Name() {
		case "type":
			into = &s.kind
		case "chat_time":
			into = &s.chatTime
		case "message_id":
			into = &s.messageID
		case "content":
			into = &s.content
		}
		if into != nil {
			err = readText(d, into)
		} else {
			err = d.Skip()
		}
	}
	if err != nil {
		return err
	}
	return fields.Err()
}
