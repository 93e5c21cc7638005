package abi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestACommandIsReadFromItsUsageLine(t *testing.T) {
	d := &NativeDecl{Name: "merge", Schema: Raw(`{"type":"object","required":["source"],"properties":{
		"source":{},"target":{},"on_conflict":{},"limit":{},"export":{}}}`)}
	for line, want := range map[string]*NativeCommand{
		"ledger merge SOURCE [--into TARGET] [-n LIMIT]": {Words: []string{"ledger", "merge"},
			Args: []NativeArg{{Param: "source"}}, Flags: map[string]string{"--into": "target", "-n": "limit"}},
		"take @EXPORT [ON_CONFLICT]": {Words: []string{"take"}, Args: []NativeArg{{Param: "export", File: true},
			{Param: "on_conflict", Optional: true}}, Flags: map[string]string{}},
		"one two": {Words: []string{"one", "two"}, Flags: map[string]string{}},
	} {
		d.Command = line
		c, err := d.ReadCommand()
		require.NoError(t, err, line)
		assert.Equal(t, want, c, line)
	}
	for _, line := range []string{"", "SOURCE", "one two three", "one OTHER", "one --into", "one SOURCE two", "one\x1b two",
		"-x one"} {
		d.Command = line
		_, err := d.ReadCommand()
		assert.Error(t, err, line)
	}
}

func TestParameterNamesComeFromTheSchemaOrTheList(t *testing.T) {
	for _, d := range []*NativeDecl{{Params: "query, limit?"}, {Schema: Raw(
		`{"required":["query"],"properties":{"query":{"properties":{"not":{}}},"limit":{}},"type":"object"}`)}} {
		names, required := d.ParamNames()
		assert.Equal(t, []string{"query", "limit"}, names)
		assert.Equal(t, []string{"query"}, required)
	}
	for _, schema := range []string{`{}`, `[]`, `{"properties":7,"required":"x"}`, `{"properties":`} {
		names, _ := (&NativeDecl{Schema: Raw(schema)}).ParamNames()
		assert.Empty(t, names, schema)
	}
}

func TestADeclarationThatIsWrongIsRefused(t *testing.T) {
	table := []ColumnDecl{{Title: "a", At: "/a"}}
	for want, d := range map[string]NativeDecl{
		"name: ":                       {Name: "a b"},
		"params: want schema or":       {Name: "a", Params: "x", Schema: Raw(`{}`)},
		"schema: want an object":       {Name: "a", Schema: Raw(`[]`)},
		"schema: has 20000 bytes":      {Name: "a", Schema: make(Raw, 20000)},
		"schema.properties: ":          {Name: "a", Schema: Raw(`{"properties":{"a b":{}}}`)},
		"command: ":                    {Name: "a", Command: "A"},
		"show.as: ":                    {Name: "a", Show: &ShowDecl{As: "graph"}},
		"show.columns: want columns":   {Name: "a", Show: &ShowDecl{As: ShowTable}},
		"show.columns: want columns f": {Name: "a", Show: &ShowDecl{As: ShowText, Columns: table}},
		"show.columns[0].title: ":      {Name: "a", Show: &ShowDecl{As: ShowTable, Columns: []ColumnDecl{{At: "/a"}}}},
		"show.columns[0].at: ":         {Name: "a", Show: &ShowDecl{As: ShowTable, Columns: []ColumnDecl{{Title: "a", At: "a"}}}},
		"show.at: ":                    {Name: "a", Show: &ShowDecl{As: ShowText, At: "a"}},
		"show.below[0]: ":              {Name: "a", Show: &ShowDecl{As: ShowTable, Columns: table, Below: []string{"b"}}},
		"failed.pointer: ":             {Name: "a", Failed: &FailedDecl{Equals: Raw(`1`)}},
		"failed.equals: missing":       {Name: "a", Failed: &FailedDecl{Pointer: "/a"}},
	} {
		e := d.check()
		require.NotNil(t, e, want)
		assert.Contains(t, e.Message, want)
	}
	right := NativeDecl{Name: "a", Schema: Raw(`{"properties":{"b":{}}}`), Command: "c d B", Failed: &FailedDecl{Pointer: "/a",
		Equals: Raw(`false`)}, Show: &ShowDecl{As: ShowTable, At: "/rows", Columns: table, Below: []string{"/b"}, Next: "/n"}}
	assert.Nil(t, right.check())
}
