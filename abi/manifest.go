package abi

// ManifestSection is the custom section that carries a module's manifest.
const ManifestSection = "memhost.manifest"

// The manifest versions that this package reads. With ManifestLists, every HTTP route must list the headers and query
// keys that a guest may set; with ManifestVersion the lists are optional.
const (
	ManifestVersion = 1
	ManifestLists   = 2
)

// The ABIs a manifest may name.
const (
	ABIMemhost = "mh1"
	ABIExtism  = "mh1-extism"
)

// ModuleManifest describes a module to the host. It is manifest.json in the module's folder, and a custom section of
// the built module. The host enforces it: a request that no route declares cannot be sent.
type ModuleManifest struct {
	Manifest    int64  `json:"manifest"`
	Name        string `json:"name"`
	Version     string `json:"version"`
	ABI         string `json:"abi"`
	Description string `json:"description"`
	Homepage    string `json:"homepage,omitempty"`
	// Providers are the names by which a configuration can choose this module.
	Providers []ProviderDecl `json:"providers"`
	// ConfigSchema is the JSON Schema (2020-12) of the native config block.
	ConfigSchema Raw           `json:"config_schema"`
	Origins      []OriginDecl  `json:"origins,omitempty"`
	Secrets      []SecretDecl  `json:"secrets,omitempty"`
	Empty        []EmptyDecl   `json:"empty,omitempty"`
	Limits       []NativeLimit `json:"limits,omitempty"`
	Routes       []RouteDecl   `json:"routes,omitempty"`
	// DeadlinesMS overrides the host's deadlines by operation, in ms.
	DeadlinesMS map[string]int64 `json:"deadlines_ms,omitempty"`
	// SettleMS is how long a request can still take effect in the backend after it was sent, in ms.
	SettleMS    int64            `json:"settle_ms,omitempty"`
	Background  []BackgroundDecl `json:"background,omitempty"`
	YieldsScope []string         `json:"yields_scope,omitempty"`
	// Requires lists capabilities that the module has in some configurations only.
	Requires []RequireDecl `json:"requires,omitempty"`
	// NativeQueries and NativeMutations declare the provider's own queries and mutations, by name.
	NativeQueries   []NativeDecl `json:"native_queries,omitempty"`
	NativeMutations []NativeDecl `json:"native_mutations,omitempty"`
	// ModelCalls says which operations call a model, which costs money. Nil means unknown. The list is complete for
	// retrieve, so an empty list means that a retrieval calls no model.
	ModelCalls []ModelCallDecl `json:"model_calls,omitzero"`
	// Unsourced says in which configurations a retrieval does not name its source events.
	Unsourced   []UnsourcedDecl  `json:"unsourced,omitempty"`
	Conformance *ConformanceDecl `json:"conformance,omitempty"`
}

// ProviderDecl is one name that a module serves.
type ProviderDecl struct {
	Name string        `json:"name"`
	Kind ConditionKind `json:"kind"`
	Note string        `json:"note,omitempty"`
	// Preset is the default config block of this name: the operator's block is merged over it.
	Preset Raw `json:"preset,omitempty"`
	// KindWhen makes the kind depend on the configuration: the first rule that matches the effective block replaces
	// Kind and Note.
	KindWhen []KindRule `json:"kind_when,omitempty"`
}

// KindRule changes a provider's kind if its effective config block has a certain value. The name by which a
// configuration chooses the provider stays the same.
type KindRule struct {
	// Pointer is a JSON Pointer into the effective block, and Equals the value that it must have. A rule whose pointer
	// leads nowhere does not match.
	Pointer string        `json:"pointer"`
	Equals  Raw           `json:"equals"`
	Kind    ConditionKind `json:"kind"`
	Note    string        `json:"note,omitempty"`
}

// OriginDecl declares a network origin. From is a JSON Pointer to its URL in the config block.
type OriginDecl struct {
	Name string `json:"name"`
	From string `json:"from"`
	// Protocol is http or bolt.
	Protocol string `json:"protocol"`
	// DatabaseFrom is for bolt origins: a JSON Pointer to the database's name. If it is absent or leads nowhere, the
	// user's home database is used.
	DatabaseFrom string `json:"database_from,omitempty"`
}

// SecretDecl declares a credential: where the config block refers to it, and which headers to which origin may carry
// it. For a bolt origin it is the password with which the host logs in.
type SecretDecl struct {
	Name    string   `json:"name"`
	From    string   `json:"from"`
	Headers []string `json:"headers,omitempty"`
	Origin  string   `json:"origin"`
	// UserFrom is for bolt origins: a JSON Pointer to the user's name. If it is absent or leads nowhere, the user is
	// neo4j.
	UserFrom string `json:"user_from,omitempty"`
}

// EmptyDecl declares an answer that means "nothing there" instead of an error. Body is a regular expression (RE2).
type EmptyDecl struct {
	Route  string `json:"route"`
	Status int64  `json:"status"`
	Body   string `json:"body,omitempty"`
}

// NativeLimit declares a limit that a route applies regardless of the budget. At least one of Native and Ceiling is
// above 0.
//
//	{"route": "facts", "field": "max_facts", "native": 10, "because": "the server has no parameter for it"}
//	{"route": "search", "field": "top_k", "ceiling": 100, "tokens_per_item": 40, "because": "the server refuses more",
//	 "configured": "/top_k"}
//
// With the second, a budget of only 800 tokens asks for 800/40 = 20 items, and a budget of 8000 for 100.
type NativeLimit struct {
	Route string `json:"route"`
	// Field is the backend's own name for the limit.
	Field string `json:"field"`
	// Native is how many items the route returns even if the budget asks for fewer.
	Native int64 `json:"native,omitempty"`
	// Ceiling is the maximum number of items in one answer of the route.
	Ceiling int64 `json:"ceiling,omitempty"`
	// TokensPerItem is the approximate number of tokens per item. It converts a budget of tokens into a number of
	// items.
	TokensPerItem int64  `json:"tokens_per_item,omitempty"`
	Because       string `json:"because"`
	// Configured is a JSON Pointer into the effective block. If it leads to a value other than null, the operator has
	// limited the items, and max_tokens does not. The schema gives that key no default.
	Configured string `json:"configured,omitempty"`
	// Pointer is a JSON Pointer into the effective block. The declaration applies only if the value there is Equals.
	// Set both or neither.
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

// RouteDecl declares one native call that a module may make.
type RouteDecl struct {
	Name   string `json:"name"`
	Origin string `json:"origin"`
	// Method and Path are for HTTP routes. Path may contain parameters: /peers/{peer}.
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	// Statement is for Bolt routes: the whole text, with parameters as $name.
	Statement string `json:"statement,omitempty"`
	// Match maps JSON Pointers into the request body to the values that must be there.
	Match map[string]Raw `json:"match,omitempty"`
	// Headers and Query are for HTTP routes: the headers (in any case) and query keys that a guest may set. Nil means
	// unspecified, which ManifestLists does not allow; empty means none. A header for which a secret is declared need
	// not be listed.
	Headers []string `json:"headers,omitzero"`
	Query   []string `json:"query,omitzero"`
	Class   Class    `json:"class"`
	// SideEffects says what a read changes in the backend (an access count, a cache that others see). The host copies
	// it into trace.read_side_effects of every operation that used the route.
	SideEffects string `json:"side_effects,omitempty"`
}

// BackgroundDecl asks the host to call an export at an interval, in ms.
type BackgroundDecl struct {
	Export     string `json:"export"`
	IntervalMS int64  `json:"interval_ms"`
	Class      Class  `json:"class"`
}

// RequireDecl says which configuration a capability needs. If several name the same capability, one of them suffices.
type RequireDecl struct {
	// Export is the capability. Without that configuration the provider does not have it, although the module exports
	// it.
	Export string `json:"export"`
	// Pointer is a JSON Pointer into the effective block. It must lead to a value other than null, and to Equals if
	// that is given.
	Pointer string `json:"pointer"`
	Equals  Raw    `json:"equals,omitempty"`
	// Because is shown to a caller who needs the capability: it says what to configure.
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
	// Params is the older form of Schema: the names of the parameters, separated by commas, with ? after an optional
	// one. A declaration has either Params or Schema, or neither if there are no parameters.
	Params string `json:"params,omitempty"`
	// Schema is the JSON Schema (2020-12) of the parameters, which are an object. The host checks the parameters
	// against it before it calls the module. At most MaxNativeSchema bytes.
	Schema Raw `json:"schema,omitempty"`
	// About is one sentence that helps a person or a model to choose among them.
	About string `json:"about,omitempty"`
	// Command is an alternative to `memhost query NAME` and `memhost mutate NAME` on the command line. See ReadCommand.
	Command string `json:"command,omitempty"`
	// Show says how the answer is shown to people. Without it they see JSON.
	Show *ShowDecl `json:"show,omitempty"`
	// Failed recognizes an answer that reports a failure: a command then exits with 1.
	Failed *FailedDecl `json:"failed,omitempty"`
	// Pointer and Equals are as in RequireDecl: without Pointer, or if it matches, the provider has this query or
	// mutation. Of several declarations with the same name, the first match counts. Both are absent in Capabilities.
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

// ShowDecl says how an answer is shown to people. The answer is the result of a query, or trace.details of a mutation's
// receipt.
type ShowDecl struct {
	// As is table (an object, or a list of them), list (an object, one line for each of its values), text (a string) or
	// files (an object from path to text). An answer of any other form is shown as JSON.
	As string `json:"as"`
	// At is a JSON Pointer to the part that is shown. Absent: the whole answer.
	At string `json:"at,omitempty"`
	// Columns are those of a table.
	Columns []ColumnDecl `json:"columns,omitempty"`
	// Below are JSON Pointers into a row, to texts or lists of texts. They are shown below the row, on lines of their
	// own.
	Below []string `json:"below,omitempty"`
	// Next is a JSON Pointer into the answer. If it leads to a string, there is another page; a call with that string
	// as the parameter after returns it.
	Next string `json:"next,omitempty"`
}

// ColumnDecl is a column of a table.
type ColumnDecl struct {
	Title string `json:"title"`
	// At is a JSON Pointer into the row. If it leads nowhere, the cell is empty. True is shown as *, false as nothing.
	At string `json:"at"`
	// Cut is the number of characters shown, for example of a hash. 0: all.
	Cut int64 `json:"cut,omitempty"`
}

// FailedDecl recognizes an answer that reports a failure: the value at Pointer in the answer is Equals.
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
	// About is a few words for the person who pays: what the model is asked, and how often.
	About string `json:"about"`
	// Least is the minimum number of model calls of one such operation. Absent: unknown.
	Least int64 `json:"least,omitempty"`
	// Pointer and Equals are as in RequireDecl: the declaration applies only if they match. Absent: always.
	Pointer string `json:"pointer,omitempty"`
	Equals  Raw    `json:"equals,omitempty"`
}

// UnsourcedDecl says that no item of a retrieval names its source events, or that it has no items. An evaluation then
// cannot count the evidence that the memory shows.
//
//	{"about": "a chat answers in its own words", "when": [{"pointer": "/read", "equals": "chat"}]}
type UnsourcedDecl struct {
	// About says in a few words what the retrieval returns instead.
	About string `json:"about"`
	// When lists the settings with which this is the case, all of them required. Absent: always.
	When []SettingDecl `json:"when,omitempty"`
}

// SettingDecl is a condition on the effective block of the configuration.
type SettingDecl struct {
	// Pointer is a JSON Pointer into the effective block, and Equals the value that it must have. Absent: any value but
	// null.
	Pointer string `json:"pointer"`
	Equals  Raw    `json:"equals,omitempty"`
}

// ConformanceDecl says which clauses of the conformance kit do not apply, and why.
type ConformanceDecl struct {
	NotApplicable []NotApplicable `json:"not_applicable,omitempty"`
	Notes         []string        `json:"notes,omitempty"`
}

// NotApplicable is a clause, or a part of one, that a provider cannot pass.
type NotApplicable struct {
	Clause  int64  `json:"clause"`
	Part    string `json:"part,omitempty"`
	Because string `json:"because"`
	// Unless is a JSON Pointer into the effective block. If it leads to a value other than null, the provider can pass
	// the clause.
	Unless string `json:"unless,omitempty"`
	// Pointer is a JSON Pointer into the effective block. The declaration applies only if the value there is Equals.
	// Set both or neither.
	Pointer string `json:"pointer,omitempty"`
	Equals  Raw    `json:"equals,omitempty"`
}
