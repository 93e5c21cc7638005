package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
	"pgregory.net/rapid"
)

// value draws a JSON value, nested at most depth levels.
func value(depth int) *rapid.Generator[any] {
	simple := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.Int64(), func(i int64) any { return json.Number(fmt.Sprint(i)) }),
		// + 0: -0 is written as 0
		rapid.Map(rapid.Float64(), func(f float64) any { return json.Number(fmt.Sprint(f + 0)) }),
	)
	if depth == 0 {
		return simple
	}
	return rapid.OneOf(simple,
		rapid.Map(rapid.SliceOfN(value(depth-1), 0, 4), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(rapid.String(), value(depth-1), 0, 4), func(m map[string]any) any { return m }))
}

func TestCanonicalJSONIsOneFormForEqualValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := value(3).Draw(t, "value")
		plain, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, plain, "", "  "); err != nil {
			t.Fatal(err)
		}
		once, err := schema.CanonicalJSON(plain)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := schema.CanonicalJSON(once)
		if err != nil {
			t.Fatal(err)
		}
		other, err := schema.CanonicalJSON(indented.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(once, twice) || !bytes.Equal(once, other) {
			t.Fatalf("%s\n%s\n%s", once, twice, other)
		}
		var a, b any
		if json.Unmarshal(plain, &a) != nil || json.Unmarshal(once, &b) != nil {
			t.Fatalf("not JSON: %s", once)
		}
		if x, y := must(json.Marshal(a)), must(json.Marshal(b)); !bytes.Equal(x, y) {
			t.Fatalf("another value:\n%s\n%s", x, y)
		}
	})
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func TestNumbersAsEncodingJSONWritesThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		if f == 0 {
			return // -0 becomes 0
		}
		want := must(json.Marshal(f))
		for _, format := range []string{"%v", "%e", "%.20f", "%E"} {
			text := fmt.Sprintf(format, f)
			if back, err := json.Number(text).Float64(); err != nil || back != f || !json.Valid([]byte(text)) ||
				format != "%v" && text != fmt.Sprint(f) {
				continue // this format drops or adds digits
			}
			got, err := schema.CanonicalJSON(abi.Raw(text))
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: got %s, want %s (%v)", text, got, want, err)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"\ud83d\ude00",null]}`, `[1,]`, `{"a":1,"a":2}`, "\"\\ud800\"", `1e9`,
		`{"":{}}`, " \n[]", `"\\u"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := schema.Decode(raw, func([]string, int) {})
		if err != nil {
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("took what is no JSON: %q", raw)
		}
		if c := schema.Canonical(v); !json.Valid(c) {
			t.Fatalf("wrote what is no JSON: %q", c)
		}
	})
}

func FuzzCompileAndApply(f *testing.F) {
	for _, seed := range [][3]string{
		{`{"properties":{"a":{"type":"integer","default":1}},"required":["a"]}`, `{}`, `{"b":1}`},
		{`{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"a":{"$ref":"#/$defs/x"}},"unevaluatedProperties":false}}}`,
			`{"a":{}}`, `{"a":{"a":{"z":1}}}`},
		{`{"oneOf":[{"required":["a"]},{"required":["b"]}],"not":{"required":["c"]},"patternProperties":{"^x":{"type":"string"}}}`, `null`, `{"x":1}`},
		{`{"properties":{"l":{"prefixItems":[{"const":1}],"items":{"anyOf":[{"type":"null"},{"minimum":3}]},"contains":{"enum":[1,2]},"uniqueItems":true}}}`, ``, `{"l":[1,1,null,4]}`},
		{`{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]},"else":false,"propertyNames":{"maxLength":3},"dependentSchemas":{"a":{"minProperties":2}}}`, `{}`, `{"a":1,"long":2}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]), []byte(seed[2]))
	}
	f.Fuzz(func(t *testing.T, rawSchema, preset, block []byte) {
		s, err := schema.Compile(rawSchema)
		if err != nil {
			if abi.CodeOf(err) != abi.CodeInvalidArgument {
				t.Fatal(err)
			}
			return
		}
		s.Fields()
		effective, err := s.Apply(preset, block)
		if err != nil {
			if e := abi.AsError(err); e.Code != abi.CodeInvalidArgument || e.Message == "" {
				t.Fatal(err)
			}
			return
		}
		again, err := s.Apply(nil, effective)
		if err != nil {
			t.Fatalf("the effective block is refused: %v\n%s", err, effective)
		}
		if !bytes.Equal(effective, again) {
			t.Fatalf("the effective block is not final:\n%s\n%s", effective, again)
		}
	})
}
