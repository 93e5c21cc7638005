package schema_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the results of this run into testdata")

// Each file of testdata/apply holds a schema and blocks with their results: the sections block (and preset), each
// followed by the section want.
func TestAppliesAsTheGoldenFilesSay(t *testing.T) {
	files, err := filepath.Glob("testdata/apply/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			require.Equal(t, "schema.json", archive.Files[0].Name)
			s, err := schema.Compile(abi.Raw(archive.Files[0].Data))
			require.NoError(t, err)
			var preset abi.Raw
			got := &txtar.Archive{Comment: archive.Comment}
			for _, section := range archive.Files {
				if section.Name == "want" {
					continue
				}
				got.Files = append(got.Files, section)
				switch section.Name {
				case "schema.json":
					continue
				case "preset":
					preset = abi.Raw(section.Data)
					continue
				}
				effective, err := s.Apply(preset, abi.Raw(section.Data))
				want := string(effective)
				if err != nil {
					require.ErrorIs(t, err, &abi.Error{Code: abi.CodeInvalidArgument})
					want = abi.AsError(err).Message
				}
				got.Files = append(got.Files, txtar.File{Name: "want", Data: []byte(want + "\n")})
			}
			if *update {
				require.NoError(t, os.WriteFile(file, txtar.Format(got), 0o644))
				return
			}
			assert.Equal(t, string(txtar.Format(archive)), string(txtar.Format(got)))
		})
	}
}

func TestCanonicalJSON(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"nil is null", ``, `null`},
		{"keys are sorted", `{"b":1,"a":{"d":[],"c":null}}`, `{"a":{"c":null,"d":[]},"b":1}`},
		{"keys are sorted by UTF-16 unit, not by byte", "{\"\U0001F600\":1,\"\uFB33\":2}",
			"{\"\U0001F600\":1,\"\uFB33\":2}"},
		{"blanks go", " [ 1 , 2 ] ", `[1,2]`},
		{"escapes are the fewest", `"\u0041\/\u001f\u2028<"`, "\"A/\\u001f\u2028<\""},
		{"short escapes", `"\b\t\n\f\r\"\\"`, `"\b\t\n\f\r\"\\"`},
		{"a pair of surrogates is a character", `"\ud83d\ude00"`, "\"\U0001F600\""},
		{"equal numbers are equal", `[1, 1.0, 1e0, 10e-1, 0.1E1, -0, 0.0, -0e5]`, `[1,1,1,1,1,0,0,0]`},
		{"large and small", `[1e20, 1e21, 123e-9, 1e-6, 1e-7, 1234.5e-8]`,
			`[100000000000000000000,1e+21,1.23e-7,0.000001,1e-7,0.000012345]`},
		{"no digit is lost", `[9007199254740993, 0.1000000000000000000001]`,
			`[9007199254740993,0.1000000000000000000001]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := schema.CanonicalJSON(abi.Raw(c.in))
			require.NoError(t, err)
			assert.Equal(t, c.want, string(got))
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"keys that stand twice", "{\"a\": 1,\n\"a\": 2}", `line 2: key "a" stands twice`},
		{"the same key, written differently", `{"a": 1, "\u0061": 2}`, `line 1: key "a" stands twice`},
		{"bad UTF-8", "\n\"\xff\"", `line 2: not valid UTF-8`},
		{"half a character", `["\ud83d"]`, `line 1: \ud83d is half a character (a lone surrogate)`},
		{"the other half", `["\\\ude00\u0041"]`, `line 1: \ude00 is half a character (a lone surrogate)`},
		{"a second value", `1 2`, `line 1: more than one JSON value`},
		{"a cut text", "{\"a\":\n", `line 2: the JSON text ends too early`},
		{"nothing", ``, `line 1: the JSON text ends too early`},
		{"a number beyond doubles", `1e999999999999`, `line 1: the number 1e999999999999 is out of range`},
		{"and one just beyond", `-1e309`, `line 1: the number -1e309 is out of range`},
		{"deep nesting", strings.Repeat("[", 65), `line 1: nested deeper than 64 levels`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := schema.Decode([]byte(c.in), nil)
			require.Error(t, err)
			assert.Equal(t, c.want, err.Error())
		})
	}
	_, err := schema.Decode([]byte("[1,\n2,,3]"), nil)
	assert.ErrorContains(t, err, "line 2: not JSON")
}

func TestHashIsOfTheValueNotOfItsText(t *testing.T) {
	assert.Equal(t, schema.Hash(abi.Raw(`{"a":1.0,"b":"x"}`)), schema.Hash(abi.Raw("{\"b\" : \"\\u0078\",\n \"a\":1}")))
	assert.NotEqual(t, schema.Hash(abi.Raw(`{"a":1}`)), schema.Hash(abi.Raw(`{"a":"1"}`)))
	assert.Equal(t, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", schema.Hash(abi.Raw(`{}`)),
		"SHA-256 of {}")
	assert.Len(t, schema.Hash(abi.Raw(`{`)), 64)
}

func TestCompileRefuses(t *testing.T) {
	deep := strings.Repeat(`{"allOf":[`, 31) + `{}` + strings.Repeat(`]}`, 31)
	chain := `{"$defs":{"a0":{}`
	for i := 1; i < 150; i++ {
		chain += `,"a` + strconv.Itoa(i) + `":{"$ref":"#/$defs/a` + strconv.Itoa(i-1) + `"}`
	}
	chain += `},"$ref":"#/$defs/a149"}`
	for _, c := range []struct{ name, in, want string }{
		{"what is no object", `true`, `config_schema: want an object, got true`},
		{"what is no JSON", `{`, `config_schema: line 1: the JSON text ends too early`},
		{"another draft", `{"$schema":"http://json-schema.org/draft-07/schema#"}`,
			`config_schema: $schema: want https://json-schema.org/draft/2020-12/schema, got "http://json-schema.org/draft-07/schema#"`},
		{"references to the network", `{"$ref":"https://example.com/s.json"}`,
			`config_schema: "$ref": only references into the schema itself are followed, like #/$defs/name; got "https://example.com/s.json"`},
		{"references to files", `{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`,
			`config_schema: properties.a."$ref": only references into the schema itself are followed, like #/$defs/name; got "file:///etc/passwd"`},
		{"references hidden in other places", `{"x":{"$ref":"other.json"},"$ref":"#/x"}`,
			`config_schema: x."$ref": only`},
		{"identities inside", `{"properties":{"a":{"$id":"https://example.com/a"}}}`,
			`config_schema: properties.a."$id": not supported here; use $ref with #/$defs/name`},
		{"references that lead nowhere", `{"$ref":"#/$defs/none"}`, `config_schema: `},
		{"types that do not exist", `{"type":"text"}`, `config_schema: is not a valid schema: `},
		{"patterns that are not RE2", `{"properties":{"a":{"pattern":"(?=x)"}}}`, `config_schema: `},
		{"patterns that cost too much", `{"properties":{"a":{"pattern":"(x{100}){100}"}}}`, `config_schema: `},
		{"circles", `{"allOf":[{"$ref":"#"}]}`, `config_schema: the part at `},
		{"long chains", chain, `config_schema: the part at `},
		{"deep nesting", deep[:len(deep)/2-1] + `{"allOf":[` + deep, `config_schema: `},
		{"too many bytes", `{"title":"` + strings.Repeat("x", schema.MaxSchema) + `"}`,
			`config_schema: has 262156 bytes`},
		{"too many values", `{"enum":[` + strings.Repeat("1,", 8000) + `1]}`, `config_schema: has 8003 values`},
		{"defaults that do not fit", `{"properties":{"n":{"type":"integer","minimum":2,"default":1}}}`,
			`config_schema: the default at "/properties/n" does not fit: the config block: found the number 1, want an integer of at least 2`},
		{"defaults without end", `{"properties":{"a":{"$ref":"#","default":{}}}}`,
			`config_schema: the default at "/properties/a": with its defaults it nests too deep`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := schema.Compile(abi.Raw(c.in))
			require.ErrorIs(t, err, &abi.Error{Code: abi.CodeInvalidArgument})
			assert.Contains(t, abi.AsError(err).Message, c.want)
			assert.NotContains(t, abi.AsError(err).Message, "memhost:config")
		})
	}
}

func TestASchemaCannotHoldUpTheHost(t *testing.T) {
	doubling := `{"properties":{"x":{"$ref":"#/$defs/d40"}},"$defs":{"d0":{"type":"string"}`
	for i := 1; i <= 40; i++ {
		below := strconv.Itoa(i - 1)
		doubling += `,"d` + strconv.Itoa(i) + `":{"allOf":[{"$ref":"#/$defs/d` + below + `"},{"$ref":"#/$defs/d` +
			below + `"}]}`
	}
	doubling += `}}`
	nested := `{"properties":{"a":{"type":"string"}},"$defs":{}}`
	branching := `{"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`
	for _, c := range []struct{ name, schema, block string }{
		{"by doubling", doubling, `{"x":"y"}`},
		{"by branching at every level", branching, strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40)},
		{"by a slow pattern on a long text", `{"properties":{"a":{"pattern":"^(a|b|ab){100}$"}}}`, `{"a":"` +
			strings.Repeat("ab", 2<<20) + `"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := schema.Compile(abi.Raw(c.schema))
			require.NoError(t, err)
			_, err = s.Apply(nil, abi.Raw(c.block))
			assert.ErrorContains(t, err, "takes too many steps")
		})
	}
	s, err := schema.Compile(abi.Raw(nested))
	require.NoError(t, err)
	_, err = s.Apply(nil, abi.Raw(`{"a":"`+strings.Repeat("x", schema.MaxBlock)+`"}`))
	assert.ErrorContains(t, err, "the config block: more than 16 MiB")
}

func TestALargeBlockPasses(t *testing.T) {
	s, err := schema.Compile(abi.Raw(`{"properties":{"profiles":{"type":"array","items":{"type":"object","additionalProperties":false,
		"required":["id","text"],"properties":{"id":{"type":"string","minLength":1},"text":{"type":"string"},"rank":{"type":"integer","default":0}}}}}}`))
	require.NoError(t, err)
	one := `{"id":"p","text":"` + strings.Repeat("word ", 20) + `"}`
	got, err := s.Apply(nil, abi.Raw(`{"profiles":[`+strings.Repeat(one+",", 19999)+one+`]}`))
	require.NoError(t, err)
	assert.Equal(t, 20000, strings.Count(string(got), `"rank":0`))
}

func TestCredentialKey(t *testing.T) {
	for _, key := range []string{"password", "bolt_password", "api_key", "apiKey", "X-API-Key", "token", "auth_token",
		"client_secret", "Authorization", "jwt", "admin_key", "apikey"} {
		assert.True(t, schema.CredentialKey(key), key)
	}
	for _, key := range []string{"", "max_tokens", "tokenizer", "context_tokens", "token_budget", "key", "group_key",
		"passwordless", "keys", "secretary"} {
		assert.False(t, schema.CredentialKey(key), key)
	}
}

func TestBlank(t *testing.T) {
	in := `{"url":"http://me:pw@host:1/x?api_key=abc&q=1","api_key":"sk-1","ref":{"secret":"neo4j"},"auth":{"token":{"deep":["a",1]}},
		"headers":{"Authorization":"Bearer x"},"max_tokens":"8000","bolt_password":{"secret":"neo4j"},"n":1}`
	want := `{"api_key":"***","auth":{"token":{"deep":["***","***"]}},"bolt_password":{"secret":"neo4j"},"headers":{"Authorization":"***"},` +
		`"max_tokens":"8000","n":1,"ref":{"secret":"neo4j"},"url":"http://***@host:1/x?api_key=***&q=1"}`
	assert.Equal(t, want, string(schema.BlankRaw(abi.Raw(in))))
	assert.Nil(t, schema.BlankRaw(nil))
	assert.Equal(t, `"***"`, string(schema.BlankRaw(abi.Raw(`{"password":"x`))))
}

func TestErrorsDoNotShowCredentials(t *testing.T) {
	s, err := schema.Compile(abi.Raw(`{"properties":{"api_key":{"type":"object"},"url":{"type":"string","pattern":"^https:"},"pin":{"enum":["a"]}}}`))
	require.NoError(t, err)
	_, err = s.Apply(nil, abi.Raw(`{"api_key":"sk-verysecret","url":"http://u:verysecret@h","api_kye":"verysecret"}`))
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "verysecret")
	assert.Contains(t, err.Error(), `api_key: found a string (not shown), want an object`)
}

func TestFieldsAreInTheOrderOfTheSchema(t *testing.T) {
	s, err := schema.Compile(abi.Raw(`{"required":["url"],"properties":{
		"url":{"type":"string","title":"Address","description":"Where the server is.","examples":["http://127.0.0.1:8000"]},
		"api_key":{"$ref":"#/$defs/secret"},
		"add_mode":{"enum":["fast","fine"],"default":"fast"},
		"fallback":{"type":"object","properties":{"z":{"type":"integer","minimum":2},"a":{"type":"boolean","default":false}}}},
		"$defs":{"secret":{"description":"A key.","type":"object","properties":{"secret":{"type":"string"}},"required":["secret"]}}}`))
	require.NoError(t, err)
	fields := s.Fields()
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	assert.Equal(t, []string{"url", "api_key", "add_mode", "fallback"}, names)
	assert.Equal(t, schema.Field{Name: "url", Title: "Address", Description: "Where the server is.", Wants: "a string",
		Required: true, Example: abi.Raw(`"http://127.0.0.1:8000"`)}, fields[0])
	assert.True(t, fields[1].Secret)
	assert.Equal(t, "A key.", fields[1].Description)
	assert.Equal(t, `"fast"`, string(fields[2].Default))
	assert.Equal(t, "z", fields[3].Fields[0].Name)
	assert.Equal(t, "an integer of at least 2", fields[3].Fields[0].Wants)
}

func TestNumbersMatchECMAScript(t *testing.T) {
	for _, f := range []float64{0, 1, -1, 0.1, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 123456789012345680000, 4.35,
		0.000001} {
		want, err := json.Marshal(f)
		require.NoError(t, err)
		got, err := schema.CanonicalJSON(abi.Raw(strconv.FormatFloat(f, 'e', -1, 64)))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got))
	}
}

func TestApplyTouchesNeitherPresetNorBlock(t *testing.T) {
	s, err := schema.Compile(abi.Raw(`{"properties":{"a":{"type":"object","properties":{"x":{"default":1},"y":{}}}}}`))
	require.NoError(t, err)
	preset, block := abi.Raw(`{"a":{"y":2}}`), abi.Raw(`{"a":{"y":3}}`)
	got, err := s.Apply(preset, block)
	require.NoError(t, err)
	assert.Equal(t, `{"a":{"x":1,"y":3}}`, string(got))
	assert.Equal(t, `{"a":{"y":2}}`, string(preset))
	assert.Equal(t, `{"a":{"y":3}}`, string(block))
	var e *abi.Error
	_, err = s.Apply(abi.Raw(`[]`), nil)
	require.True(t, errors.As(err, &e))
	assert.Equal(t, "the module's preset: want an object, got a list of 0", e.Message)
}

func TestWhatIsMissingComesWithAnExampleToPaste(t *testing.T) {
	s, err := schema.Compile([]byte(`{"type":"object","required":["llm"],"properties":{"llm":{"type":"object",
		"examples":[{"base_url":"http://127.0.0.1:11434/v1","model":"qwen3:8b"}]}}}`))
	require.NoError(t, err)
	_, err = s.Apply(nil, nil)
	assert.ErrorContains(t, err,
		`llm: missing, want an object; for example llm: {"base_url":"http://127.0.0.1:11434/v1","model":"qwen3:8b"}`)
}
