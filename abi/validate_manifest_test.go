package abi

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const wholeManifest = `{"manifest":1,"name":"mem0","version":"0.1.0","abi":"mh1","description":"d","homepage":"h",
 "providers":[{"name":"mem0","kind":"architecture","kind_when":[{"pointer":"/infer","equals":false,"kind":"control","note":"n"}]},{"name":"simple_rag","kind":"control","note":"n","preset":{"infer":false}}],
 "config_schema":{},"origins":[{"name":"api","from":"/url","protocol":"http"},{"name":"bolt","from":"/bolt","protocol":"bolt","database_from":"/database"}],
 "secrets":[{"name":"api_key","from":"/api_key","headers":["x-api-key","authorization"],"origin":"api"},
  {"name":"password","from":"/password","origin":"bolt","user_from":"/user"}],
 "empty":[{"route":"search","status":404,"body":"peer .* not found"}],
 "limits":[{"route":"facts","field":"max_facts","native":10,"because":"b"}],
 "routes":[{"name":"search","origin":"api","method":"POST","path":"/peers/{peer}/search","class":"read"},
  {"name":"mcp","origin":"api","method":"POST","path":"/mcp","match":{"/method":"tools/call","/params/a~1b":[1]},"class":"read"},
  {"name":"facts","origin":"bolt","statement":"MATCH (e) RETURN e","class":"write"}],
 "deadlines_ms":{"record_event":120000,"retrieve":30000},"settle_ms":3000,
 "background":[{"export":"wait_until_ready","interval_ms":1000,"class":"write"}],"yields_scope":["wait_until_ready"],
 "requires":[{"export":"provenance","pointer":"/bolt","because":"r"},{"export":"provenance","pointer":"/surface","equals":"mcp","because":"r"}],
 "model_calls":[{"operation":"retrieve","model":"embedding","about":"a","pointer":"/read","equals":"chat"}],
 "unsourced":[{"about":"a","when":[{"pointer":"/read","equals":"chat"},{"pointer":"/b"}]}],
 "conformance":{"not_applicable":[{"clause":4,"part":"inventory","because":"b","unless":"/bolt","pointer":"/surface","equals":"rest"}],"notes":["n"]}}`

func TestValidateManifest(t *testing.T) {
	checkValid(t, func() validator { return new(ModuleManifest) }, [][2]string{
		{wholeManifest, ``},
		{`{"manifest":2,"name":"a","version":"1","abi":"mh1","providers":[{"name":"a","kind":"control"}],"config_schema":{},
		 "origins":[{"name":"api","from":"/url","protocol":"http"},{"name":"bolt","from":"/bolt","protocol":"bolt"}],
		 "limits":[{"route":"search","field":"top_k","ceiling":100,"tokens_per_item":40,"because":"b"}],
		 "routes":[{"name":"search","origin":"api","method":"POST","path":"/search","headers":["content-type","accept-encoding"],"query":[],"class":"read"},
		  {"name":"facts","origin":"bolt","statement":"MATCH (e) RETURN e","class":"write"}]}`, ``},
		{`{"manifest":1,"name":"a","version":"1","abi":"mh1-extism","providers":[{"name":"a","kind":"control"}],"config_schema":{}}`, ``},
	})
	for _, c := range []struct{ name, old, new, want string }{
		{"version", `"manifest":1`, `"manifest":2`,
			`routes[0].headers: missing, want the headers that the module may set, [] for none`},
		{"version to come", `"manifest":1`, `"manifest":3`, `manifest: version 3, want 1 or 2`},
		{"a header that is none", `"path":"/mcp"`, `"path":"/mcp","headers":["a b"]`,
			`routes[1].headers[0]: "a b" is no header name`},
		{"the host's header", `"path":"/mcp"`, `"path":"/mcp","headers":["x-a","X-HTTP-Method-Override"]`,
			`routes[1].headers[1]: X-HTTP-Method-Override is never a module's to set`},
		{"compression beside a secret", `"path":"/mcp"`, `"path":"/mcp","headers":["Accept-Encoding"]`,
			`routes[1].headers[0]: Accept-Encoding is never a module's to set`},
		{"a query key without name", `"path":"/mcp"`, `"path":"/mcp","query":[""]`,
			`routes[1].query[0]: missing or empty`},
		{"headers of a bolt route", `"statement":`, `"headers":[],"statement":`,
			`routes[2].headers: not of a bolt origin, which has none`},
		{"query of a bolt route", `"statement":`, `"query":[],"statement":`,
			`routes[2].query: not of a bolt origin, which has none`},
		{"limit's number", `"native":10,`, ``, `limits[0].native: want at least 1, or a ceiling in its place`},
		{"limit's ceiling", `"native":10,`, `"native":10,"ceiling":-1,`, `limits[0].ceiling: negative`},
		{"limit's tokens", `"native":10,`, `"ceiling":10,"tokens_per_item":-1,`, `limits[0].tokens_per_item: negative`},
		{"name", `"name":"mem0","version"`, `"name":"Mem0","version"`,
			`name: "Mem0" is no name: want a small letter, then up to 63 small letters, digits and underscores`},
		{"no name", `"name":"mem0","version"`, `"version"`, `name: missing or empty`},
		{"module version", `"version":"0.1.0"`, `"version":""`, `version: missing or empty`},
		{"abi", `"mh1"`, `"mh2"`, `abi: "mh2" is not one of mh1, mh1-extism`},
		{"kind", `"kind":"control","note":"n","preset"`, `"kind":"Control","note":"n","preset"`,
			`providers[1].kind: "Control" is not one of architecture, control`},
		{"rule's pointer", `"/infer"`, `"infer"`, `providers[0].kind_when[0].pointer: "infer" is no JSON Pointer, such as /url`},
		{"rule's value", `"equals":false,`, ``, `providers[0].kind_when[0].equals: missing`},
		{"rule's kind", `"kind":"control","note":"n"}]`, `"kind":""}]`,
			`providers[0].kind_when[0].kind: "" is not one of architecture, control`},
		{"provider twice", `"simple_rag"`, `"mem0"`, `providers[1].name: "mem0" is declared twice`},
		{"preset", `{"infer":false}`, `[1]`, `providers[1].preset: want an object`},
		{"schema", `"config_schema":{}`, `"config_schema":true`, `config_schema: want an object`},
		{"origin's pointer", `"/url"`, `"url"`, `origins[0].from: "url" is no JSON Pointer, such as /url`},
		{"origin's protocol", `"protocol":"bolt"`, `"protocol":"neo4j"`,
			`origins[1].protocol: "neo4j" is not one of http, bolt`},
		{"origin twice", `{"name":"bolt"`, `{"name":"api"`, `origins[1].name: "api" is declared twice`},
		{"secret's pointer", `"/api_key"`, `"/api~2key"`,
			`secrets[0].from: "/api~2key" is no JSON Pointer, such as /url`},
		{"secret's header", `"authorization"`, `"x y"`, `secrets[0].headers[1]: "x y" is no header name`},
		{"secret's origin", `"origin":"api"},
  {"name":"password"`, `"origin":"apii"},
  {"name":"password"`, `secrets[0].origin: no origin "apii", did you mean "api"?`},
		{"secret's user", `"/user"`, `"user"`, `secrets[1].user_from: "user" is no JSON Pointer, such as /url`},
		{"user of an http secret", `"origin":"bolt","user_from"`, `"origin":"api","user_from"`,
			`secrets[1].user_from: only of a bolt origin`},
		{"headers of a bolt secret", `"from":"/password"`, `"from":"/password","headers":["x"]`,
			`secrets[1].headers: not of a bolt origin, which has none`},
		{"two secrets of a bolt origin", `{"name":"password"`,
			`{"name":"other","from":"/o","origin":"bolt"},{"name":"password"`,
			`secrets[2].origin: bolt origin "bolt" has a secret already`},
		{"database's pointer", `"/database"`, `"database"`,
			`origins[1].database_from: "database" is no JSON Pointer, such as /url`},
		{"database of an http origin", `"protocol":"http"`, `"protocol":"http","database_from":"/d"`,
			`origins[0].database_from: only of a bolt origin`},
		{"empty's route", `"route":"search"`, `"route":"serach"`,
			`empty[0].route: no route "serach", did you mean "search"?`},
		{"empty's status", `404`, `4040`, `empty[0].status: 4040 is no HTTP status`},
		{"limit's route", `"route":"facts"`, `"route":""`, `limits[0].route: missing or empty`},
		{"limit's reason", `"native":10,"because":"b"`, `"native":10`, `limits[0].because: missing or empty`},
		{"route twice", `{"name":"mcp"`, `{"name":"search"`, `routes[1].name: "search" is declared twice`},
		{"route's origin", `"origin":"bolt","statement"`, `"origin":"blot","statement"`,
			`routes[2].origin: no origin "blot", did you mean "bolt"?`},
		{"class", `"class":"write"}],`, `"class":"writes"}],`,
			`routes[2].class: "writes" is not one of read, write, admin`},
		{"statement on http", `"path":"/mcp"`, `"path":"/mcp","statement":"x"`,
			`routes[1].statement: not of an http origin, want method and path`},
		{"no method", `"method":"POST","path":"/mcp"`, `"path":"/mcp"`,
			`routes[1].method: "" is no HTTP method in capitals`},
		{"small method", `"method":"POST","path":"/mcp"`, `"method":"post","path":"/mcp"`,
			`routes[1].method: "post" is no HTTP method in capitals`},
		{"no path", `"path":"/mcp",`, ``, `routes[1].path: "" does not start with /`},
		{"relative path", `"/mcp"`, `"mcp"`, `routes[1].path: "mcp" does not start with /`},
		{"query in path", `"/mcp"`, `"/mcp?a=b"`, `routes[1].path: "?" cannot stand in a path`},
		{"blank in path", `"/mcp"`, `"/m cp"`, `routes[1].path: " " cannot stand in a path`},
		{"open parameter", `{peer}`, `{peer`, `routes[0].path: { without }`},
		{"closing only", `{peer}`, `peer}`, `routes[0].path: "}" cannot stand in a path`},
		{"empty parameter", `{peer}`, `{}`, `routes[0].path: "{}" is no parameter: want small letters, digits and underscores`},
		{"nested parameter", `{peer}`, `{a{b}`, `routes[0].path: "{a{b}" is no parameter: want small letters, digits and underscores`},
		{"parameter twice", `{peer}/search`, `{peer}/{peer}`, `routes[0].path: parameter {peer} occurs twice`},
		{"match key", `"/method":`, `"method":`, `routes[1].match.method: "method" is no JSON Pointer, such as /url`},
		{"statement missing", `"statement":"MATCH (e) RETURN e",`, ``, `routes[2].statement: missing or empty`},
		{"method on bolt", `"statement"`, `"method":"GET","statement"`,
			`routes[2].method: not of a bolt origin, want statement`},
		{"path on bolt", `"statement"`, `"path":"/","statement"`,
			`routes[2].path: not of a bolt origin, want statement`},
		{"match on bolt", `"statement"`, `"match":{"/a":1},"statement"`, `routes[2].match: not of a bolt origin`},
		{"deadline's operation", `"retrieve":30000`, `"retreve":30000`,
			`deadlines_ms.retreve: "retreve" is no operation, did you mean "retrieve"?`},
		{"deadline", `30000`, `0`, `deadlines_ms.retrieve: want more than 0`},
		{"settle", `3000,`, `-1,`, `settle_ms: negative`},
		{"background's export", `"export":"wait_until_ready"`, `"export":"wait"`,
			`background[0].export: "wait" is not one of wait_until_ready, readiness`},
		{"background's interval", `"interval_ms":1000`, `"interval_ms":0`,
			`background[0].interval_ms: want more than 0`},
		{"model call's operation", `"operation":"retrieve","model"`, `"operation":"ask","model"`,
			`model_calls[0].operation: "ask" is no operation`},
		{"model call's model", `"model":"embedding"`, `"model":"big"`,
			`model_calls[0].model: "big" is not one of embedding, language`},
		{"model call's text", `"model":"embedding","about":"a"`, `"model":"embedding","about":""`,
			`model_calls[0].about: missing or empty`},
		{"model call's pointer", `"about":"a","pointer":"/read"`, `"about":"a"`,
			`model_calls[0].equals: want a pointer, too`},
		{"what is shown instead", `"unsourced":[{"about":"a"`, `"unsourced":[{"about":""`,
			`unsourced[0].about: missing or empty`},
		{"setting's pointer", `{"pointer":"/b"}`, `{"pointer":"b"}`, `unsourced[0].when[1].pointer: "b" is no JSON Pointer, such as /url`},
		{"background's class", `"interval_ms":1000,"class":"write"`, `"interval_ms":1000,"class":"admin"`,
			`background[0].class: "admin" is not one of read, write`},
		{"yields", `"yields_scope":["wait_until_ready"]`, `"yields_scope":["record_event"]`,
			`yields_scope[0]: "record_event" is not one of wait_until_ready, apply_feedback, native_mutation`},
		{"required for what", `"export":"provenance","pointer":"/bolt"`, `"export":"provenence","pointer":"/bolt"`,
			`requires[0].export: "provenence" is no capability, did you mean "provenance"?`},
		{"required operation", `"export":"provenance","pointer":"/bolt"`, `"export":"retrieve","pointer":"/bolt"`,
			`requires[0].export: "retrieve" is no capability`},
		{"required where", `"pointer":"/surface"`, `"pointer":"surface"`,
			`requires[1].pointer: "surface" is no JSON Pointer, such as /url`},
		{"required why", `"equals":"mcp","because":"r"`, `"equals":"mcp"`, `requires[1].because: missing or empty`},
		{"unless", `"unless":"/bolt"`, `"unless":"bolt"`,
			`conformance.not_applicable[0].unless: "bolt" is no JSON Pointer, such as /url`},
		{"declared where", `"pointer":"/surface","equals":"rest"`, `"pointer":"surface","equals":"rest"`,
			`conformance.not_applicable[0].pointer: "surface" is no JSON Pointer, such as /url`},
		{"declared for what", `"pointer":"/surface","equals":"rest"`, `"pointer":"/surface"`,
			`conformance.not_applicable[0].equals: missing`},
		{"clause", `"clause":4`, `"clause":16`, `conformance.not_applicable[0].clause: want 1 to 15`},
		{"whole clause", `"part":"inventory",`, ``,
			`conformance.not_applicable[0].part: missing: clause 4 cannot be left out as a whole`},
		{"clause's reason", `"part":"inventory","because":"b"`, `"part":"inventory"`,
			`conformance.not_applicable[0].because: missing or empty`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(wholeManifest, c.old, c.new, 1)
			require.NotEqual(t, wholeManifest, text)
			checkValid(t, func() validator { return new(ModuleManifest) }, [][2]string{{text, c.want}})
		})
	}
}

func TestHeadersThatAreNeverAGuests(t *testing.T) {
	for _, name := range []string{"Host", "content_length", "Range", "X-HTTP-Method-Override", "x_http_method_override",
		"X-Original-URL",
		"X-Rewrite-URL", "X-Forwarded-Host", "X-Forwarded-Method"} {
		require.True(t, HostHeader(name, false), name)
		require.False(t, SafeHeader(name), name)
	}
	require.True(t, HostHeader("Accept-Encoding", true))
	require.False(t, HostHeader("Accept-Encoding", false))
	for _, name := range SafeHeaders() {
		require.False(t, HostHeader(name, false), name)
		require.True(t, SafeHeader(strings.ToUpper(name)), name)
	}
}

func TestManifestWarnsOfRoutesWithoutLists(t *testing.T) {
	m := new(ModuleManifest)
	require.NoError(t, Unmarshal([]byte(wholeManifest), m))
	require.Equal(t, []string{"routes_unlisted: 2 of 3 routes do not list their headers or query keys: there the " +
		"module may set " +
		"a fixed set of headers, and any query key but _method"}, m.Warnings())
	for i := range m.Routes {
		m.Routes[i].Headers, m.Routes[i].Query = []string{}, []string{}
	}
	require.Empty(t, m.Warnings())
}
