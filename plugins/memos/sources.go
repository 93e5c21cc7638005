package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
)

// source is a source of a memory: one message of an event.
type source struct {
	kind, chatTime, messageID, content string
}

// textOnly is the kind of a source that has only a text, its content.
const textOnly = "text"

// sourceDepth is the maximum depth of unpacking. Three layers are known; a user's text that looks like another layer
// does no harm.
const sourceDepth = 8

// sourcesInto reads metadata.sources as they are packed, in all their shapes:
//
//	neo4j-community              [{"type":"chat","role":...}]
//	neo4j, search and by id      [{"type":"doc","role":null,"content":"\"{\\\"type\\\":\\\"chat\\\"...}\""}]:
//	                             content is a JSON text that holds a JSON text
//	neo4j, POST get_memory       ["\"{\\\"type\\\":...}\""]: the same without the object around it
//	neo4j, after async           the same, and inside it a doc once more
//	any of them                  the whole list as a JSON text
func sourcesInto(list *[]*source) wire.Each {
	return func(e wire.Element) wire.Fields {
		s := &source{kind: textOnly}
		switch e.Kind() {
		case wirejson.String:
			*list = append(*list, textSources(wire.Text(e.Raw()))...)
		case wirejson.Object:
			*list = append(*list, s)
			return s.fields()
		}
		return nil
	}
}

// textSources returns a text as one source, or the sources of a list in it.
func textSources(text string) (list []*source) {
	if !strings.HasPrefix(text, "[") || wire.Check([]byte(text)) != nil {
		return []*source{{kind: textOnly, content: text}}
	}
	for _, item := range wire.Items(abi.Raw(text)) {
		list = append(list, &source{kind: textOnly, content: string(item)})
	}
	return list
}

func (s *source) fields() wire.Fields {
	s.kind = ""
	return wire.Fields{"type", &s.kind, "chat_time", &s.chatTime, "message_id", &s.messageID, "content", &s.content}
}

// unpack returns the innermost source of each: a text that is JSON is parsed, and a doc whose content is JSON is
// replaced by that content, repeatedly. A text that is not JSON is not a source.
func unpack(packed []*source) []*source {
	unpacked := packed[:0]
	for _, s := range packed {
		var innermost *source
		for depth := 0; s != nil && depth <= sourceDepth; depth++ {
			if s.kind != textOnly {
				innermost = s
			}
			s = s.inside()
		}
		if innermost != nil {
			unpacked = append(unpacked, innermost)
		}
	}
	return unpacked
}

// inside returns the source that a text, or the content of a doc, contains as JSON; nil if there is none.
func (s *source) inside() *source {
	if s.kind != textOnly && (s.kind != "doc" || s.messageID != "") {
		return nil
	}
	inner := &source{kind: textOnly}
	d := wirejson.DecodeStr(s.content).Limit(abi.MaxDepth)
	var err error
	switch d.Next() {
	case wirejson.String:
		inner.content, err = d.Str()
	case wirejson.Object:
		err = wire.Decode(d, inner.fields()...)
	default:
		return nil
	}
	if err != nil || !d.AtEnd() {
		return nil
	}
	return inner
}
