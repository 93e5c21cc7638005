package abi

// ManifestSection is the custom section that carries a module's manifest.
const ManifestSection = "memhost.manifest"

// The forms of manifest that this package reads. In ManifestLists every route over HTTP lists the headers and query
// keys that a guest may set; in ManifestVersion it may.
const (
	ManifestVersion = 1
	ManifestLists   = 2
)

// The ABIs a manifest may name.
const (
	ABIMemhost = "mh1"
	ABIExtism  = "mh1-extism"
)

// ModuleManifest is what a module says of itself: manifest.json in its folder, attached to it as a custom section. The
// host holds the module to it; what is not in the route table cannot be sent.
type ModuleManifest struct {
	Manifest    int64  `json:"manifest"`
	Name        string `json:"name"`
	Version     string `json:"version"`
	ABI         string `json:"abi"`
	Description string `json:"description"`
	Homepage    string `json:"homepage,omitempty"`
	// Providers are the names under which a configuration can choose this module.
	Providers []ProviderDecl `json:"providers"`
	// ConfigSchema is the JSON Schema (2020-12) of the native config block.
	ConfigSchema Raw           `json:"config_schema"`
	Origins      []OriginDecl  `json:"origins,omitempty"`
	Secrets      []SecretDecl  `json:"secrets,omitempty"`
	Empty        []EmptyDecl   `json:"empty,omitempty"`
	Limits       []NativeLimit `json:"limits,omitempty"`
	Routes       []RouteDecl   `json:"routes,omitempty"`
	// DeadlinesMS holds the module's own deadline for an operation, in ms, where it differs from the host's.
	DeadlinesMS map[string]int64 `json:"deadlines_ms,omitempty"`
	// SettleMS is how long after it was sent a request can still take effect in the backend, in ms.
	SettleMS    int64            `json:"settle_ms,omitempty"`
	Background  []BackgroundDecl `json:"background,omitempty"`
	YieldsScope []string         `json:"yields_scope,omitempty"`
	// Requires names capabilities that the module has in some configurations only.
	Requires []RequireDecl `json:"requires,omitempty"`
	// NativeQueries and NativeMutations are the provider's own, by name: what native_query and native_mutation take.
	NativeQueries   []NativeDecl `json:"native_queries,omitempty"`
	NativeMutations []NativeDecl `json:"native_mutations,omitempty"`
	// ModelCalls say which operations cost calls of a model. Nil means that the manifest does not say; a list is complete
	// for retrieve, so that an empty one means that a question costs none.
	ModelCalls []ModelCallDecl `json:"model_calls,omitzero"`
	// Unsourced says in which configurations a retrieval names no source events.
	Unsourced   []UnsourcedDecl  `json:"unsourced,omitempty"`
	Conformance *ConformanceDecl `json:"conformance,omitempty"`
}

// ProviderDecl is one name that a module serves.
type ProviderDecl struct {
	Name string        `json:"name"`
	Kind ConditionKind `json:"kind"`
	Note string        `json:"note,omitempty"`
	// Preset is laid under the operator's config block.
	Preset Raw `json:"preset,omitempty"`
	// KindWhen makes the kind depend on the configuration: the first rule that the effective block meets replaces Kind and
	// Note.
	KindWhen []KindRule `json:"kind_when,omitempty"`
}

// KindRule says what a provider is if its effective config block has a certain value. The word by which a configuration
// chooses the provider does not change with it.
type KindRule struct {
	// Pointer is a JSON Pointer into the effective block, Equals the value that must be there. A place that does not exist
	// meets no rule.
	Pointer string        `json:"pointer"`
	Equals  Raw           `json:"equals"`
	Kind    ConditionKind `json:"kind"`
	Note    string        `json:"note,omitempty"`
}

// OriginDecl names a place on the network. From is a JSON Pointer into the config block, where the URL stands.
type OriginDecl struct {
	Name string `json:"name"`
	From string `json:"from"`
	// Protocol is http or bolt.
	Protocol string `json:"protocol"`
	// DatabaseFrom is for bolt origins: a JSON Pointer to the database's name. If it is absent, or there is nothing, the
	// user's home database is used.
	DatabaseFrom string `json:"database_from,omitempty"`
}

// SecretDecl names a credential: where the config block refers to it, and which headers to which origin may carry it.
// For a bolt origin it is the password with which the host logs on.
type SecretDecl struct {
	Name    string   `json:"name"`
	From    string   `json:"from"`
	Headers []string `json:"headers,omitempty"`
	Origin  string   `json:"origin"`
	// UserFrom is of bolt origins: a JSON Pointer to the name of the user. Absent, or nothing there: neo4j.
	UserFrom string `json:"user_from,omitempty"`
}

// EmptyDecl declares an answer that means "nothing there" instead of an error. Body is a regular expression (RE2).
type EmptyDecl struct {
	Route  string `json:"route"`
	Status int64  `json:"status"`
	Body   string `json:"body,omitempty"`
}

// NativeLimit declares what a route gives whatever the budget asks for. At least one of Native and Ceiling is above 0.
//
//	{"route": "facts", "field": "max_facts", "native": 10, "because": "the server has no parameter for it"}
//	{"route": "search", "field": "top_k", "ceiling": 100, "tokens_per_item": 40, "because": "the server refuses more",
//	 "configured": "/top_k"}
//
// With the second, a budget of 800 tokens alone asks for 800/40 = 20 items, one of 8000 for 100.
type NativeLimit struct {
	Route string `json:"route"`
	// Field is the backend's own name for the limit.
	Field string `json:"field"`
	// Native is how many items the route fetches even where the budget asks for fewer.
	Native int64 `json:"native,omitempty"`
	// Ceiling is the most items that one answer of the route can have.
	Ceiling int64 `json:"ceiling,omitempty"`
	// TokensPerItem is about how many tokens one item has: what turns a budget of tokens into a number of items.
	TokensPerItem int64  `json:"tokens_per_item,omitempty"`
	Because       string `json:"because"`
	// Configured is a JSON Pointer into the effective block: where something other than null stands there, the operator
	// has limited the items, and max_tokens does not. The schema gives that key no default.
	Configured string `json:"configured,omitempty"`
	// Pointer is a JSON Pointer into the effective block: the declaration counts only where Equals stands there. Both or
	// neither.
	Pointer string `json:"pointer,omitempty"`
	Equals  Raw    `json:"equals,omitempty"`
}

// Class is what a native call does to the backend.
type Class string

// The classes of a route. Admin is allowed only inside setup_scope, reset_scope, native_mutation and forget.
const (
	ClassRead  Class = "read"
	ClassWrite Class = "write"
	ClassAdmin Class = "admin"
)

// RouteDecl is one native call that a module may make.
type RouteDecl struct {
	Name   string `json:"name"`
	Origin string `json:"origin"`
	// Method and Path are of HTTP routes. Path may hold parameters: /peers/{peer}.
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	// Statement is of Bolt routes: the whole text, parameters by $name.
	Statement string `json:"statement,omitempty"`
	// Match holds JSON Pointers into the request body with the values they must have.
	Match map[string]Raw `json:"match,omitempty"`
	// Headers and Query are for HTTP routes: the headers (in any case) and query keys that a guest may set. Nil means that
	// the manifest does not say, which ManifestLists does not allow; empty means none. Headers for which a secret is
	// declared need not be listed.
	Headers []string `json:"headers,omitzero"`
	Query   []string `json:"query,omitzero"`
	Class   Class    `json:"class"`
	// SideEffects says what a read changes in the backend (an access count, a cache that others see). The host puts it
	// into trace.read_side_effects of every operation that used the route.
	SideEffects string `json:"side_effects,omitempty"`
}

// BackgroundDecl asks the host to call an export at an interval, in ms.
type BackgroundDecl struct {
	Export     string `json:"export"`
	IntervalMS int64  `json:"interval_ms"`
	Class      Class  `json:"class"`
}

// RequireDecl says what a capability needs of the configuration. A capability with several of them needs one.
type RequireDecl struct {
	// Export is the capability: without what it needs the provider does not have it, although the module exports it.
	Export string `json:"export"`
	// Pointer is a JSON Pointer into the effective block. Something other than null must stand there, and Equals, where it
	// is given.
	Pointer string `json:"pointer"`
	Equals  Raw    `json:"equals,omitempty"`
	// Because is shown to a caller who asks for the capability: what to configure.
	Because string `json:"because"`
}

// NativeDecl declares a native query or mutation: what every door shows of it is made from this declaration.
//
//	{"name": "log", "about": "The commits of a branch, newest first.", "command": "ledger log [-n LIMIT]",
//	 "schema": {"type": "object", "additionalProperties": false,
//	            "properties": {"limit": {"type": "integer", "minimum": 1, "maximum": 1000}}},
//	 "show": {"as": "table", "columns": [{"title": "id", "at": "/id", "cut": 8}, {"title": "message", "at": "/message"}]}}
type NativeDecl struct {
	Name string `json:"name"`
	// Params is the older form of Schema: the names of the parameters, with commas between them; ? follows one that may
	// be left out. A declaration has one of the two, or neither, if there are no parameters.
	Params string `json:"params,omitempty"`
	// Schema is the JSON Schema (2020-12) of the parameters, an object. The host checks parameters against it, before the
	// module is asked. At most MaxNativeSchema bytes.
	Schema Raw `json:"schema,omitempty"`
	// About is a sentence for whoever chooses among them, a model perhaps.
	About string `json:"about,omitempty"`
	// Command is how the command line names it, beside `memhost query NAME` and `memhost mutate NAME`. See ReadCommand.
	Command string `json:"command,omitempty"`
	// Show says how people are shown the answer. Without it they see JSON.
	Show *ShowDecl `json:"show,omitempty"`
	// Failed tells an answer that reports a failure: a command then exits with 1.
	Failed *FailedDecl `json:"failed,omitempty"`
	// Pointer is a JSON Pointer into the effective block, as in RequireDecl: without it, or where it is met, the provider
	// has this. Of several declarations of one name the first that is met counts. Absent in Capabilities.
	Pointer string `json:"pointer,omitempty"`
	Equals  Raw    `json:"equals,omitempty"`
}

// The ways to show an answer in a ShowDecl.
const (
	ShowTable = "table"
	ShowList  = "list"
	ShowText  = "text"
	ShowFiles = "files"
)

// ShowDecl says how people are shown an answer: the result of a query, or trace.details of a mutation's receipt.
type ShowDecl struct {
	// As is table (an object, or a list of them), list (an object, a line for each of its values), text (a string) or
	// files (an object: path to text). An answer of another form is shown as JSON.
	As string `json:"as"`
	// At is a JSON Pointer to what is shown. Absent: the whole answer.
	At string `json:"at,omitempty"`
	// Columns are those of a table.
	Columns []ColumnDecl `json:"columns,omitempty"`
	// Below are JSON Pointers into a row: texts, or lists of them, that follow the row in lines of their own.
	Below []string `json:"below,omitempty"`
	// Next is a JSON Pointer into the answer: if a string is there, there is another page, and a call with that string
	// as the parameter after answers it.
	Next string `json:"next,omitempty"`
}

// ColumnDecl is a column of a table.
type ColumnDecl struct {
	Title string `json:"title"`
	// At is a JSON Pointer into the row. A value that is not there leaves the cell empty; true is shown as *, and false
	// as nothing.
	At string `json:"at"`
	// Cut is the number of characters that are shown, as of a hash. 0: all.
	Cut int64 `json:"cut,omitempty"`
}

// FailedDecl tells an answer that reports a failure: at Pointer in the answer stands Equals.
type FailedDecl struct {
	Pointer string `json:"pointer"`
	Equals  Raw    `json:"equals"`
}

// The kinds of model in a ModelCallDecl.
const (
	ModelEmbedding = "embedding"
	ModelLanguage  = "language"
)

// ModelCallDecl says that an operation makes the module or its backend call a model.
//
//	{"operation": "retrieve", "model": "embedding", "about": "the query is embedded"}
//	{"operation": "retrieve", "model": "language", "about": "the backend's model answers", "pointer": "/read",
//	 "equals": "chat"}
type ModelCallDecl struct {
	Operation string `json:"operation"`
	// Model is embedding or language.
	Model string `json:"model"`
	// About is a few words for the person who pays: what is asked of the model, and how often.
	About string `json:"about"`
	// Least is at least how many calls one such operation makes; absent: not known.
	Least int64 `json:"least,omitempty"`
	// Pointer is a JSON Pointer into the effective block, as in RequireDecl: the declaration counts only where it is met.
	// Absent: always.
	Pointer string `json:"pointer,omitempty"`
	Equals  Raw    `json:"equals,omitempty"`
}

// UnsourcedDecl says that no item of a retrieval names its source events, or that it has no items. An evaluation then
// cannot count the evidence that the memory shows.
//
//	{"about": "a chat answers in its own words", "when": [{"pointer": "/read", "equals": "chat"}]}
type UnsourcedDecl struct {
	// About says in a few words what the retrieval shows instead.
	About string `json:"about"`
	// When has the settings with which this is so, all of them; absent: always.
	When []SettingDecl `json:"when,omitempty"`
}

// SettingDecl is a value in the effective block of the configuration.
type SettingDecl struct {
	// Pointer is a JSON Pointer into the effective block, Equals the value that must be there; absent: any but null.
	Pointer string `json:"pointer"`
	Equals  Raw    `json:"equals,omitempty"`
}

// ConformanceDecl says which clauses of the conformance kit do not apply, and why.
type ConformanceDecl struct {
	NotApplicable []NotApplicable `json:"not_applicable,omitempty"`
	Notes         []string        `json:"notes,omitempty"`
}

// NotApplicable is one clause, or a part of it, that a provider cannot meet.
type NotApplicable struct {
	Clause  int64  `json:"clause"`
	Part    string `json:"part,omitempty"`
	Because string `json:"because"`
	// Unless is a JSON Pointer into the effective block: where something other than null stands there, the provider can
	// meet it.
	Unless string `json:"unless,omitempty"`
	// Pointer is a JSON Pointer into the effective block: the declaration counts only where Equals stands there. Both or
	// neither.
	Pointer string `json:"pointer,omitempty"`
	Equals  Raw    `json:"equals,omitempty"`
}
