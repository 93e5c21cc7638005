package server

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the page
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs.css
var docsStyle string

// renderDocs makes the page of the document, and its Content-Security-Policy: it has no script, and loads nothing from
// elsewhere.
func renderDocs(doc *huma.OpenAPI) (page []byte, policy string, err error) {
	var b bytes.Buffer
	if err := pageOf(doc).document().Render(&b); err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256([]byte(docsStyle))
	policy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return b.Bytes(), policy, nil
}

// docsPage is the content of the page.
type docsPage struct {
	Title, Version string
	Intro          []string
	Groups         []docsGroup
	Types          []docsType
}

type docsGroup struct {
	Name, About string
	Operations  []docsOperation
}

type docsOperation struct {
	ID, Method, Path, Summary, About string
	Request, Answer                  docsBody
	Problems                         []docsProblem
}

type docsBody struct{ Name, Media, Example string }

type docsProblem struct{ Status, About string }

type docsType struct {
	Name, About string
	Fields      []docsField
}

type docsField struct {
	Name, About string
	Required    bool
	Type        docsValue
}

// docsValue is a type in words. Name is linked.
type docsValue struct{ Before, Name, After string }

func pageOf(doc *huma.OpenAPI) *docsPage {
	p := &docsPage{Title: doc.Info.Title, Version: doc.Info.Version,
		Intro: strings.Split(doc.Info.Description, "\n\n")}
	for _, tag := range doc.Tags {
		g := docsGroup{Name: tag.Name, About: tag.Description}
		for _, path := range sortedKeys(doc.Paths) {
			item := doc.Paths[path]
			for _, op := range []*huma.Operation{item.Get, item.Put, item.Post} {
				if op != nil && slices.Contains(op.Tags, tag.Name) {
					g.Operations = append(g.Operations, docsOperationOf(op))
				}
			}
		}
		p.Groups = append(p.Groups, g)
	}
	schemas := doc.Components.Schemas.Map()
	for _, name := range sortedKeys(schemas) {
		p.Types = append(p.Types, docsTypeOf(name, schemas[name]))
	}
	return p
}

func docsOperationOf(op *huma.Operation) docsOperation {
	d := docsOperation{ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary, About: op.Description}
	if op.RequestBody != nil {
		d.Request = docsBodyOf(op.RequestBody.Content)
	}
	for _, status := range sortedKeys(op.Responses) {
		r := op.Responses[status]
		if r.Ref == "" {
			d.Answer = docsBodyOf(r.Content)
			continue
		}
		d.Problems = append(d.Problems, docsProblem{Status: status, About: r.Description})
	}
	return d
}

func docsBodyOf(content map[string]*huma.MediaType) (b docsBody) {
	for media, m := range content {
		b.Media, b.Name = media, refName(m.Schema.Ref)
		if example, ok := m.Example.(json.RawMessage); ok {
			var indented bytes.Buffer
			if json.Indent(&indented, example, "", "  ") == nil {
				b.Example = indented.String()
			}
		}
	}
	return b
}

func docsTypeOf(name string, s *huma.Schema) docsType {
	t := docsType{Name: name, About: s.Description}
	for _, field := range sortedKeys(s.Properties) {
		p := s.Properties[field]
		t.Fields = append(t.Fields, docsField{Name: field, About: p.Description,
			Required: slices.Contains(s.Required, field), Type: docsValueOf(p)})
	}
	return t
}

func docsValueOf(s *huma.Schema) docsValue {
	switch {
	case s.Ref != "":
		return docsValue{Name: refName(s.Ref)}
	case s.Type == huma.TypeArray:
		v := docsValueOf(s.Items)
		v.Before = "list of " + v.Before
		return v
	case len(s.OneOf) > 0:
		var names []string
		for _, one := range s.OneOf {
			names = append(names, refName(one.Ref))
		}
		return docsValue{Before: strings.Join(names, " or ")}
	case s.Type == huma.TypeObject:
		elem, ok := s.AdditionalProperties.(*huma.Schema)
		if !ok {
			return docsValue{Before: "object"}
		}
		v := docsValueOf(elem)
		v.Before = "name to " + v.Before
		return v
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, word := range s.Enum {
			words[i] = fmt.Sprint(word)
		}
		return docsValue{Before: strings.Join(words, " | ")}
	case s.Type == "":
		return docsValue{Before: "any JSON value"}
	}
	v := docsValue{Before: s.Type}
	if s.Format == "date-time" {
		v.Before = "time"
	}
	if s.Nullable {
		v.After = " or null"
	}
	return v
}

func refName(ref string) string { return strings.TrimPrefix(ref, schemaPrefix) }

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
