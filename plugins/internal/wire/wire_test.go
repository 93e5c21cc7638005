package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
)

func TestAnObjectIsWrittenInItsOrder(t *testing.T) {
	o := wire.Object{"text", "a\"b", "flag", false, "int", 1, "number", int64(-2), "real", 0.5, "raw", abi.Raw(`[1]`),
		"list", []string{"x", "y"},
		"within", wire.Object{"z", 1, "a", wire.Object{}}, "several", []wire.Object{{"id", "1"}, {}}, "none", nil,
		"no bytes", abi.Raw(nil),
		"some", wire.Some("x"), "no text", wire.Some(""), "if", wire.If(true, 1), "if not", wire.If(false, 1)}
	assert.Equal(t, `{"text":"a\"b","flag":false,"int":1,"number":-2,"real":0.5,"raw":[1],"list":["x","y"],"within":{"z":1,"a":{}},`+
		`"several":[{"id":"1"},{}],"some":"x","if":1}`, string(o.JSON()))
	assert.Equal(t, `{}`, string(wire.Object(nil).JSON()))
	assert.Equal(t, map[string]abi.Raw{"b": abi.Raw(`1`), "a": abi.Raw(`"x"`)},
		wire.Object{"b", 1, "c", nil, "a", "x"}.Map())
	assert.Equal(t, wire.Object{"a", abi.Raw(`1`), "b", abi.Raw(`2`)},
		wire.FromMap(map[string]abi.Raw{"b": abi.Raw(`2`), "a": abi.Raw(`1`)}))
	assert.Panics(t, func() { wire.Object{"x", struct{}{}}.JSON() })
}

// places has one of each.
type places struct {
	text          string
	flag          bool
	whole         int64
	real          float64
	maybe         *float64
	maybeText     *string
	list          []string
	items         []abi.Raw
	raw           abi.Raw
	within, twice string
}

func (p *places) all() []any {
	return []any{"text", &p.text, "flag", &p.flag, "whole", &p.whole, "real", &p.real, "maybe", &p.maybe, "maybe_text",
		&p.maybeText,
		"list", &p.list, "items", &p.items, "raw", &p.raw, "object", wire.Fields{"within", &p.within}, "twice",
		&p.twice}
}

func TestMembersAreReadIntoTheirPlaces(t *testing.T) {
	const object = ` {"text": "a\u0062", "flag": true, "whole": -7, "real": 0.5, "maybe": 2, "maybe_text": "", "list": ["x", "y"],
		"items": [1, {"a": []}], "raw": {"b": 1}, "object": {"other": [], "within": "w"}, "twice": "1", "unknown": [[]], "twice": "2"} `
	want := places{text: "ab", flag: true, whole: -7, real: 0.5, maybe: new(2.0), maybeText: new(""),
		list:  []string{"x", "y"},
		items: []abi.Raw{abi.Raw(`1`), abi.Raw(`{"a": []}`)}, raw: abi.Raw(`{"b": 1}`), within: "w", twice: "2"}
	var picked, read places
	wire.Pick(abi.Raw(object), picked.all()...)
	require.NoError(t, wire.Read(abi.Raw(object), read.all()...))
	assert.Equal(t, want, picked)
	assert.Equal(t, want, read)
}

func TestAMemberOfAnotherTypeIsLeftOutOrAnError(t *testing.T) {
	for object, wrong := range map[string]string{
		`{"text":1}`:                 "text: want a string, got number",
		`{"flag":"x"}`:               "flag: want true or false, got string",
		`{"whole":1.5}`:              "whole: ",
		`{"whole":"1"}`:              "whole: want an integer, got string",
		`{"real":1e999}`:             "real: ",
		`{"maybe":1e999}`:            "maybe: ",
		`{"maybe":[]}`:               "maybe: want a number, got array",
		`{"list":{}}`:                "list: want a list of strings, got object",
		`{"items":{}}`:               "items: want a list, got object",
		`{"object":[]}`:              "want an object, got array",
		`{"object":{"within":true}}`: "object: within: want a string, got bool",
		`[]`:                         "want an object, got array",
		`7`:                          "want an object, got number",
	} {
		var p places
		wire.Pick(abi.Raw(object), p.all()...)
		assert.Equal(t, places{}, p, object)
		assert.ErrorContains(t, wire.Read(abi.Raw(object), p.all()...), wrong, object)
	}
	for _, object := range []string{`null`, `{}`, `{"text":null,"flag":null,"whole":null,"real":null,"maybe":null,"list":null,"items":null,"raw":null,"object":null}`} {
		var p places
		wire.Pick(abi.Raw(object), p.all()...)
		require.NoError(t, wire.Read(abi.Raw(object), p.all()...), object)
		assert.Equal(t, places{}, p, object)
	}
	var p places
	wire.Pick(abi.Raw(`{"list":"one","items":"two","text":1,"whole":5}`), p.all()...)
	assert.Equal(t, places{list: []string{"one"}, items: []abi.Raw{abi.Raw(`"two"`)}, whole: 5}, p,
		"one string is a list of one")
	assert.ErrorContains(t, wire.Read(abi.Raw(`{"items":"two"}`), p.all()...), "items: want a list, got string")
	assert.ErrorContains(t, wire.Read(abi.Raw(`{"list":"one"}`), p.all()...), "list: want a list of strings")
	assert.ErrorContains(t, wire.Read(abi.Raw(`{"list":[1]}`), p.all()...), "list: want a string")
	assert.Panics(t, func() { wire.Pick(abi.Raw(`{"x":1}`), "x", 1) })
}

func TestValuesAreFoundByTheirPath(t *testing.T) {
	object := abi.Raw(`{"a":{"b":{"c":"x"}},"list":[1,"two"],"none":null}`)
	assert.Equal(t, "x", wire.Text(wire.At(object, "a", "b", "c")))
	for _, path := range [][]string{{"b"}, {"a", "c"}, {"list", "a"}, {"none"}, {"a", "b", "c", "d"}} {
		assert.Nil(t, wire.At(object, path...), path)
	}
	assert.Equal(t, []abi.Raw{abi.Raw(`1`), abi.Raw(`"two"`)}, wire.Items(wire.At(object, "list")))
	assert.Nil(t, wire.Items(object))
	assert.Nil(t, wire.Members(wire.At(object, "list")))
	assert.Empty(t, wire.Text(object))
	assert.Empty(t, wire.Text(nil))
}

func TestCheck(t *testing.T) {
	deep := strings.Repeat("[", abi.MaxDepth)
	require.NoError(t, wire.Check([]byte(deep+strings.Repeat("]", abi.MaxDepth))))
	for _, wrong := range []string{"", "<html>", `{"a":1`, `{} {}`, "{\"a\":\"\xff\"}", `{"a":` + deep +
		strings.Repeat("]", abi.MaxDepth) + "}"} {
		assert.Error(t, wire.Check([]byte(wrong)), wrong)
		assert.Error(t, wire.Open([]byte(wrong)), wrong)
	}
	assert.ErrorContains(t, wire.Open([]byte(`[]`)), "it is not an object")
	a := ""
	require.NoError(t, wire.Open([]byte(` {"a":"x","b":[]} `), "a", &a))
	assert.Equal(t, "x", a)
}

// FuzzReadingGoodValues: reading a checked value never fails, and gives the same as encoding/json.
func FuzzReadingGoodValues(f *testing.F) {
	f.Add([]byte(`{"text":"a","whole":1,"list":["x"],"object":{"within":"w"}}`))
	f.Add([]byte(`[{"text":1}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if wire.Check(text) != nil {
			return
		}
		var p places
		wire.Pick(text, p.all()...)
		_ = wire.Read(text, p.all()...)
		var list []json.RawMessage
		if json.Unmarshal(text, &list) == nil {
			assert.Len(t, wire.Items(text), len(list))
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(text, &object) == nil {
			for _, m := range wire.Members(text) {
				_, known := object[m.Name]
				assert.True(t, known || strings.ContainsAny(m.Name, "\ufffd"), m.Name)
			}
		}
	})
}
