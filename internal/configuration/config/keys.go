package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
)

// kind is what a key takes.
type kind int

const (
	aText kind = iota
	anID
	aTruth
	anInteger
	aChoice
	aList
	// aBlocks is a map from a provider's name to its native block, whose keys are the provider's own.
	aBlocks
	// aSecrets is a map from a secret's name to where it comes from.
	aSecrets
	// aHeaders is a map from a header's name to {secret: NAME}.
	aHeaders
)

// Key is one key of the configuration outside the native blocks.
type Key struct {
	// Path is dotted: memory.scope.run_id.
	Path string
	// Env is the variable that sets it; in memory.backends, memory.conditions and secrets NAME and KEY stand for the rest.
	Env string
	// Flag is the flag that sets it, without dashes; "" for none.
	Flag string
	// Default is nil, a string, an int, a bool or an empty []string.
	Default any
	// Wants says what values fit.
	Wants string
	Doc   string
}

type key struct {
	path     string
	kind     kind
	flag     string
	def      any
	doc      string
	choices  []string
	globs    bool // of a list's elements
	min, max int64
}

const (
	mib    = 1 << 20
	gib    = 1 << 30
	day    = 24 * 60 * 60 * 1000
	maxID  = 512  // bytes, the bound of every id in the contract
	maxAny = 4096 // bytes of any other text
)

// keys is the whole configuration, in the order in which it is shown.
func keys() []key {
	return []key{
		{path: "memory.backend", kind: aText, flag: "backend", def: DefaultProvider,
			doc: "The memory architecture that serves. Exactly one of backend and condition is set."},
		{path: "memory.condition", kind: aText, flag: "condition", doc: "The control condition that serves."},
		{path: "memory.plugin", kind: aText, flag: "plugin", doc: "A module file, a module in a registry " +
			"(oci://HOST/NAME:TAG), or the name of a built-in module; built-in modules are found by the " +
			"provider's name without it."},
		{path: "memory.profile", kind: aChoice, flag: "profile", def: "best", choices: []string{"best", "source-design"},
			doc: "How a provider asks its backend: best as its page says, source-design with exactly the native calls of the " +
				"published design."},
		{path: "memory.frame", kind: aChoice, flag: "frame", choices: []string{"full", "compact", "minimal"},
			doc: "How much a formatted context has beside the memories' own words. Default: compact under the profile best, " +
				"full under source-design."},
		{path: "memory.namespace", kind: aText, flag: "namespace", def: "", max: maxID,
			doc: "Separates installations that share one backend."},
		{path: "memory.scope.run_id", kind: anID, flag: "run", def: "default",
			doc: "The run whose memory is meant where a request does not say."},
		{path: "memory.scope.persona_id", kind: anID, flag: "user", def: "default",
			doc: "The persona whose memory is meant where a request does not say."},
		{path: "memory.scope.agent_id", kind: anID, flag: "agent",
			doc: "The agent. Where it is set, agent_scoped is on unless it says otherwise."},
		{path: "memory.agent_scoped", kind: aTruth, def: false, doc: "Makes agent_id a part of the scope. Otherwise it " +
			"travels as a label."},
		{path: "memory.scopes", kind: aChoice, def: "any", choices: []string{"any", "configured"},
			doc: "Whether requests may name other scopes than the configured one."},
		{path: "memory.tokenizer", kind: aChoice, flag: "tokenizer", def: "bytes4",
			choices: []string{"bytes4", "cl100k_base", "o200k_base"},
			doc:     "How tokens are counted: bytes4 estimates, the others count exactly and take longer."},
		{path: "memory.smoke", kind: aChoice, flag: "smoke", def: "auto", choices: []string{"auto", "always", "never"},
			doc: "Whether a provider is tried out before it serves: auto does when no verdict is stored for module, " +
				"configuration and backend version."},
		{path: "memory.smoke_wait_ms", kind: anInteger, def: 30000, min: 0, max: day,
			doc: "How long a smoke waits for a slow backend before its verdict is pending."},
		{path: "memory.read_only_test_sessions", kind: aTruth, def: false,
			doc: "Makes sessions that match test_sessions read-only."},
		{path: "memory.test_sessions", kind: aList, globs: true, def: []string{}, doc: "Globs of session ids."},
		{path: "memory.feedback", kind: aTruth, def: false, doc: "Lets feedback change memory, where the provider can; " +
			"the run manifest says so."},
		{path: "memory.lookup_existing", kind: aTruth, def: true,
			doc: "Looks up what a new data folder does not know in a backend that had the scope before, so that nothing is " +
				"doubled."},
		{path: "memory.retry_empty", kind: aChoice, def: "never", choices: []string{"never", "once"},
			doc: "Whether an event of which the backend kept nothing is sent once more when it is recorded again. A second " +
				"try can double what was kept of a part, and costs model calls; an evaluation never does it."},
		{path: "memory.archive", kind: aTruth, def: false, doc: "Keeps every recorded event word for word in the data " +
			"folder, out of every provider's reach, for moving to another memory. A new data folder begins with it on; one " +
			"that began without it, or with a database, keeps it off."},
		{path: "memory.shadows", kind: aList, def: []string{},
			doc: "Providers that get every write too and whose answers no agent sees, by name; only a configuration file may " +
				"name them."},
		{path: "memory.shadow_percent", kind: anInteger, def: 20, min: 0, max: 100,
			doc: "The share of retrievals that shadows are asked too, after the agent has its answer."},
		{path: "memory.shadow_from", kind: aChoice, def: "archive", choices: []string{"archive", "now"},
			doc: "Where a new shadow begins: with all that the archive has, or with what is recorded from now on."},
		{path: "memory.backends", kind: aBlocks, doc: "Native config blocks of backends. Only the chosen one is read."},
		{path: "memory.conditions", kind: aBlocks, doc: "Native config blocks of conditions. Only the chosen one is read."},
		{path: "modules.trust", kind: aList, def: []string{},
			doc: "Which modules may serve beside the built-in ones, a line each: " + trustForms + ". Without a line, any may."},
		{path: "modules.sigstore_root", kind: aText, def: "",
			doc: "The file trusted_root.json of Sigstore, against which keyless signatures are checked. Nothing is fetched."},
		{path: "secrets", kind: aSecrets, doc: "Where credentials come from, and the one origin to which each may go. " +
			"Blocks name them: {secret: NAME}."},
		{path: "server.listen", kind: aText, flag: "listen", def: "127.0.0.1:7077",
			doc: "The address of the HTTP door, host:port."},
		{path: "server.public_url", kind: aText, doc: "Where a reverse proxy has the slot: https://HOST or https://HOST/PATH."},
		{path: "server.max_body_bytes", kind: anInteger, def: 16 * mib, min: 1024, max: gib,
			doc: "The largest request body."},
		{path: "server.shutdown_ms", kind: anInteger, def: 10000, min: 0, max: day,
			doc: "How long shutdown may take. Running requests have all but a quarter of it, but 1 to 3 s."},
		{path: "server.page", kind: aChoice, flag: "page", def: "on", choices: []string{"off", "read", "on"},
			doc: "The page in the browser: on offers changes, read only shows and asks, off serves none."},
		{path: "server.runs", kind: aText, flag: "runs", def: "",
			doc: "A folder with evaluation runs, or one run, which the page shows; empty means none."},
		{path: "mcp.session", kind: aText, flag: "mcp-session", def: "", max: maxID,
			doc: "The session id of what an MCP client records and asks; empty means a new one for each start."},
		{path: "mcp.max_tokens", kind: anInteger, flag: "mcp-max-tokens", def: 3500, min: 1, max: 1 << 20,
			doc: "The budget of a context that an MCP client gets."},
		{path: "mcp.query", kind: aText, flag: "mcp-query", def: "What is known about the user?",
			doc: "The question behind the MCP resource memhost://context."},
		{path: "mcp.native_tools", kind: aList, def: []string{},
			doc: "The provider's own queries and mutations that an MCP client has as tools, by name; * is all."},
		{path: "mcp.allow", kind: aList, flag: "mcp-allow", def: []string{}, choices: []string{"set_mode", "reset", "forget"},
			doc: "Tools that an MCP client has only when they are named here."},
		{path: "data.dir", kind: aText, flag: "data", def: "", doc: "The data folder; empty means memhost in the XDG data " +
			"folder."},
		{path: "data.durability", kind: aChoice, flag: "durability", def: "power", choices: []string{"power", "process"},
			doc: "What an acknowledged write survives: a power loss, or only the end of the process."},
		{path: "data.state_bytes_per_scope", kind: anInteger, def: gib, min: mib, max: 1024 * gib,
			doc: "How much a module may keep for one scope."},
		{path: "data.ledger_retention_ms", kind: anInteger, def: 0, min: 0, max: 3650 * day,
			doc: "How long receipts of delivered events are kept; 0 means forever."},
		{path: "data.archive_retention_ms", kind: anInteger, def: 0, min: 0, max: 36500 * day,
			doc: "How long the archive keeps an event; 0 means forever."},
		{path: "store.postgres.url", kind: aText, doc: "A PostgreSQL database that keeps state, ledger and mode in place " +
			"of a file in the data folder: postgres://USER@HOST:PORT/DATABASE."},
		{path: "store.postgres.password.secret", kind: aText, doc: "The name of the secret that is the user's password; " +
			"its origin is postgres://HOST:PORT."},
		{path: "store.postgres.schema", kind: aText, doc: "The PostgreSQL schema of the tables. Default: memhost."},
		{path: "store.postgres.connections", kind: anInteger, def: 0, min: 0, max: 1024, doc: "How many connections to the " +
			"database this host opens at most, at least 2; 0 means a fourth of what the server allows its user, at most 17, " +
			"and 5 behind a pooler."},
		{path: "store.postgres.direct.url", kind: aText, doc: "The server itself where store.postgres.url leads to a pooler: " +
			"sessions are renewed there, and migrations run there. Default: the same URL."},
		{path: "store.postgres.direct.password.secret", kind: aText, doc: "The name of the secret that is the user's password " +
			"there; its origin is postgres://HOST:PORT of that URL."},
		{path: "data.shadow_retention_ms", kind: anInteger, def: 14 * day, min: 1, max: 3650 * day,
			doc: "How long stored answers of shadows are kept."},
		{path: "run.seed", kind: aText, flag: "seed", def: "", max: maxID,
			doc: "The seed of the run, for the run manifest; the slot does not use it."},
		{path: "run.replicate", kind: aText, flag: "replicate", def: "", max: maxID,
			doc: "Which repetition of the run this is, for the run manifest."},
		{path: "run.labels", kind: aList, flag: "label", def: []string{},
			doc: "Further labels for the run manifest, as KEY=VALUE."},
		{path: "run.manifest", kind: aText, flag: "manifest", def: "",
			doc: "Where the run manifest is written; empty means manifest.json in the data folder."},
		{path: "trace.file", kind: aText, flag: "trace", def: "", doc: "The log of the run, a JSON line an operation; " +
			"empty means none."},
		{path: "trace.max_bytes", kind: anInteger, def: 64 * mib, min: 1024, max: 1024 * gib,
			doc: "How large the log of the run grows before it is put aside for a new one."},
		{path: "trace.keep", kind: anInteger, def: 5, min: 0, max: 10000, doc: "How many logs that were put aside are kept."},
		{path: "trace.include", kind: aChoice, def: "none", choices: []string{"none", "content"},
			doc: "content logs requests and answers, too: what users and memory say."},
		{path: "telemetry.otlp.endpoint", kind: aText, doc: "The URL of an OpenTelemetry collector that gets spans by OTLP " +
			"over HTTP (JSON), without /v1/traces: http://127.0.0.1:4318. Without it no spans are made."},
		{path: "telemetry.otlp.headers", kind: aHeaders, doc: "Headers for the collector by name, each {secret: NAME}; the " +
			"secret's origin is the collector's."},
		{path: "telemetry.otlp.sample_percent", kind: anInteger, def: 100, min: 0, max: 100,
			doc: "The share of traces that are recorded, of those that begin here."},
		{path: "telemetry.propagate", kind: aTruth, def: false,
			doc: "Sends the header traceparent to backends, too, so that their own spans join the trace."},
		{path: "log.level", kind: aChoice, flag: "log-level", def: "info", choices: []string{"debug", "info", "warn",
			"error"}, doc: "What is logged."},
		{path: "log.format", kind: aChoice, flag: "log-format", def: "text", choices: []string{"text", "json"},
			doc: "How it is logged."},
		{path: "limits.memory_bytes", kind: anInteger, def: 128 * mib, min: mib, max: 4 * gib,
			doc: "The memory of one module instance."},
		{path: "limits.pool", kind: anInteger, def: 4, min: 1, max: 1024, doc: "The most instances of the module at a time."},
		{path: "limits.calls_in_flight", kind: anInteger, def: 256, min: 1, max: 1 << 20,
			doc: "The most calls under way or waiting; more are refused."},
		{path: "limits.call_memory_bytes", kind: anInteger, def: 0, min: 0, max: 1024 * gib,
			doc: "The memory that calls over HTTP may take together, by an estimate from their bodies and budgets; more are " +
				"refused for a second. 0 means what GOMEMLIMIT, the cgroup or the machine has, less 96 MiB."},
		{path: "limits.response_bytes", kind: anInteger, def: 16 * mib, min: 1024, max: gib,
			doc: "The largest answer of a backend to one native call, and of the module to one operation."},
		{path: "limits.request_bytes", kind: anInteger, def: 16 * mib, min: 1024, max: gib,
			doc: "The largest request that enters the module; the larger of this and server.max_body_bytes counts."},
		{path: "limits.state_write_bytes", kind: anInteger, def: 32 * mib, min: 1024, max: gib,
			doc: "The most state that the module may write in one operation."},
		{path: "limits.queue_bytes", kind: anInteger, def: 64 * mib, min: 1024, max: gib,
			doc: "The most that waits for shadows where no archive is kept; the oldest events are dropped beyond it."},
		{path: "limits.mode_wait_ms", kind: anInteger, def: 10000, min: 1, max: day,
			doc: "How long going read-only waits for writes under way."},
		{path: "limits.deadline_ms", kind: anInteger, def: 30000, min: 1, max: day,
			doc: "How long an operation may take where the module's manifest does not say."},
	}
}

// Keys lists the configuration's keys, for help texts and documentation.
func Keys() []Key {
	var list []Key
	for _, k := range keys() {
		env := envName(strings.Split(k.path, "."))
		switch k.kind {
		case aBlocks:
			env += "__NAME__KEY"
		case aSecrets:
			env += "__NAME__ENV"
		case aHeaders:
			env += "__NAME__SECRET"
		}
		list = append(list, Key{Path: k.path, Env: env, Flag: k.flag, Default: k.def, Wants: k.wants(), Doc: k.doc})
	}
	return list
}

// FlagKeys maps the flags that Options.Flags may hold, without dashes, to the keys they set.
func FlagKeys() map[string]string {
	m := map[string]string{}
	for _, k := range keys() {
		if k.flag != "" {
			m[k.flag] = k.path
		}
	}
	return m
}

func (k *key) wants() string {
	switch k.kind {
	case anID:
		return fmt.Sprintf("a string of 1 to %d bytes", maxID)
	case aTruth:
		return "true or false"
	case anInteger:
		return fmt.Sprintf("an integer from %d to %d", k.min, k.max)
	case aChoice:
		return "one of " + strings.Join(k.choices, ", ")
	case aList:
		if len(k.choices) > 0 {
			return "a list of " + strings.Join(k.choices, ", ")
		}
		return "a list of strings"
	case aBlocks, aSecrets, aHeaders:
		return "an object"
	}
	return "a string"
}

// textual reports whether the key takes a text as it is, so that 123 in a variable is the text 123.
func (k *key) textual() bool { return k.kind == aText || k.kind == anID || k.kind == aChoice }

// node is a place in the tree of keys: a group, or a key.
type node struct {
	key      *key
	children map[string]*node
	order    []string
}

func keyTree() *node {
	root := &node{children: map[string]*node{}}
	all := keys()
	for i := range all {
		n := root
		for _, step := range strings.Split(all[i].path, ".") {
			next := n.children[step]
			if next == nil {
				next = &node{children: map[string]*node{}}
				n.children[step] = next
				n.order = append(n.order, step)
			}
			n = next
		}
		n.key = &all[i]
	}
	return root
}

// find returns the deepest node on path and how many steps lead to it.
func (n *node) find(path []string) (*node, int) {
	for i, step := range path {
		next := n.children[step]
		if next == nil {
			return n, i
		}
		n = next
	}
	return n, len(path)
}

// elsewhere finds the path of a key of this name in another group: backend is in memory.
func elsewhere(name string) string {
	for _, k := range keys() {
		if strings.HasSuffix(k.path, "."+name) {
			return k.path
		}
	}
	return ""
}

// nearElsewhere is the path of the key whose last step is most like name: server.listen for lisen. It is "" when none
// is.
func nearElsewhere(name string) string {
	var last []string
	for _, k := range keys() {
		last = append(last, k.path[strings.LastIndex(k.path, ".")+1:])
	}
	near := abi.Nearest(name, last)
	if near == "" {
		return ""
	}
	return elsewhere(near)
}

func secretKeys() []string { return []string{"env", "file", "origin"} }

// defaults is the lowest layer.
func (l *loader) defaults() *layer {
	tree := map[string]any{}
	for _, k := range keys() {
		if k.def == nil {
			continue
		}
		var v any
		switch d := k.def.(type) {
		case int:
			v = json.Number(fmt.Sprint(d))
		case []string:
			v = []any{}
		default:
			v = d
		}
		path := strings.Split(k.path, ".")
		set(tree, path, v)
	}
	return &layer{kind: KindDefault, tree: tree, from: map[string]Origin{"": {Kind: KindDefault}}}
}

// set puts v at a path, making maps on the way.
func set(tree map[string]any, path []string, v any) {
	for _, step := range path[:len(path)-1] {
		next, ok := tree[step].(map[string]any)
		if !ok {
			next = map[string]any{}
			tree[step] = next
		}
		tree = next
	}
	tree[path[len(path)-1]] = v
}

// remove deletes the key at a path.
func remove(tree map[string]any, path ...string) {
	if m, ok := lookup(tree, path[:len(path)-1]); ok {
		if m, ok := m.(map[string]any); ok {
			delete(m, path[len(path)-1])
		}
	}
}

func has(tree map[string]any, path ...string) bool {
	v, ok := lookup(tree, path)
	return ok && v != nil
}

func isOneOf(word string, list []string) bool { return slices.Contains(list, word) }
