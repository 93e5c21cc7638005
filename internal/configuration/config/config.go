// Package config reads memhost's configuration: embedded defaults, then a file (YAML or JSON), then the environment,
// then flags. Each layer overrides the one before.
//
// Load checks everything outside the native config blocks and selects the chosen block. That block is checked against
// its module's schema later, by internal/configuration/schema, when the module is available. All mistakes are reported
// at once, each with its place, what was found, what is wanted and what to do. Config.Source says where each value came
// from; Config.YAML prints everything with credentials blanked.
package config

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/adrg/xdg"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
)

// The words that choose a provider: an architecture is a backend, a control is a condition.
const (
	WordBackend   = "backend"
	WordCondition = "condition"
)

// DefaultProvider is the backend that serves when nothing is configured.
const DefaultProvider = "recall"

// FormerDefault is the condition that was the default in earlier versions. Data folders created by such a version keep
// it, and so does a slot in a database, whose hosts may have several versions.
const FormerDefault = "full_history"

// Config is the effective configuration. It does not change after Load.
type Config struct {
	// File is the configuration file as it was given, "" for none.
	File      string            `koanf:"-"`
	Memory    Memory            `koanf:"memory"`
	Modules   Modules           `koanf:"modules"`
	Secrets   map[string]Secret `koanf:"-"`
	Server    Server            `koanf:"server"`
	MCP       MCP               `koanf:"mcp"`
	Data      Data              `koanf:"data"`
	Store     Store             `koanf:"store"`
	Run       Run               `koanf:"run"`
	Trace     Trace             `koanf:"trace"`
	Telemetry Telemetry         `koanf:"telemetry"`
	Log       Log               `koanf:"log"`
	Limits    Limits            `koanf:"limits"`

	word, name string
	pluginPath string
	trust      []Trust
	block      map[string]any
	tree       map[string]any
	sources    map[string]Origin
	warnings   []string
}

// Memory configures the memory behind the slot.
type Memory struct {
	// Plugin is a module file, a module in a registry (oci://...) or the name of a built-in module, as given; "" means
	// the built-in module that serves the chosen provider. PluginFile reports whether it is a file.
	Plugin string `koanf:"plugin"`
	// Profile is best or source-design.
	Profile string `koanf:"profile"`
	// Frame is full, compact or minimal; "" means the profile's default.
	Frame     string `koanf:"frame"`
	Namespace string `koanf:"namespace"`
	Scope     Scope  `koanf:"scope"`
	// AgentScoped makes agent_id part of the scope; otherwise it is only a label.
	AgentScoped bool `koanf:"agent_scoped"`
	// Scopes is any, or configured if requests may name only Scope.
	Scopes string `koanf:"scopes"`
	// Tokenizer is bytes4, cl100k_base or o200k_base.
	Tokenizer string `koanf:"tokenizer"`
	// Smoke is auto, always or never.
	Smoke       string `koanf:"smoke"`
	SmokeWaitMS int64  `koanf:"smoke_wait_ms"`

	ReadOnlyTestSessions bool `koanf:"read_only_test_sessions"`
	// TestSessions are globs in the syntax of path.Match.
	TestSessions []string `koanf:"test_sessions"`
	// Feedback enables apply_feedback.
	Feedback bool `koanf:"feedback"`
	// LookupExisting looks up an event that the data folder does not know in a backend that already has the scope.
	LookupExisting bool `koanf:"lookup_existing"`
	// RetryEmpty is never or once: whether an event from which the backend kept nothing is sent again when it is
	// recorded again.
	RetryEmpty string `koanf:"retry_empty"`
	// Archive keeps every recorded event word for word, where no provider can read it.
	Archive bool `koanf:"archive"`
	// Shadows are providers that also get every write, and ShadowPercent of the retrievals. A new one starts from
	// ShadowFrom: archive or now.
	Shadows       []string `koanf:"shadows"`
	ShadowPercent int64    `koanf:"shadow_percent"`
	ShadowFrom    string   `koanf:"shadow_from"`
}

// Modules says which modules may serve.
type Modules struct {
	// Trust holds the lines that Config.Trust returns parsed.
	Trust []string `koanf:"trust"`
	// SigstoreRoot is the file of the trusted root for keyless signatures; "" for none.
	SigstoreRoot string `koanf:"sigstore_root"`
}

// Scope is the configured scope. AgentID is "" for none.
type Scope struct {
	RunID     string `koanf:"run_id"`
	PersonaID string `koanf:"persona_id"`
	AgentID   string `koanf:"agent_id"`
}

// Server is the HTTP door.
type Server struct {
	// Listen is host:port; port 0 takes a free one.
	Listen string `koanf:"listen"`
	// PublicURL is the address of the slot behind a proxy, "" for none.
	PublicURL    string `koanf:"public_url"`
	MaxBodyBytes int64  `koanf:"max_body_bytes"`
	ShutdownMS   int64  `koanf:"shutdown_ms"`
	// Page is off, read (it shows and asks) or on (it also offers changes).
	Page string `koanf:"page"`
	// PageTexts allows the page to show texts off loopback.
	PageTexts bool `koanf:"page_texts"`
	// Runs is a folder with evaluation runs; "" for none. A relative path in a file is relative to that file's folder.
	Runs string `koanf:"runs"`
}

// MCP is the Model Context Protocol door.
type MCP struct {
	// NativeTools are the provider's own queries and mutations that an MCP client gets as tools; "*" means all of them.
	NativeTools []string `koanf:"native_tools"`
	// Session is "" for a new session at each start.
	Session   string `koanf:"session"`
	MaxTokens int64  `koanf:"max_tokens"`
	Query     string `koanf:"query"`
	// Allow names tools that are off by default: set_mode, reset, forget.
	Allow []string `koanf:"allow"`
}

// Data is the durable storage of the slot.
type Data struct {
	// Dir is never empty. A relative path in a file is relative to that file's folder.
	Dir string `koanf:"dir"`
	// Durability is power (acknowledged writes survive a power loss) or process (they survive the end of the process).
	Durability string `koanf:"durability"`
	// Files keeps a copy of each scope's files in the folder.
	Files              bool  `koanf:"files"`
	StateBytesPerScope int64 `koanf:"state_bytes_per_scope"`
	LedgerRetentionMS  int64 `koanf:"ledger_retention_ms"`
	ArchiveRetentionMS int64 `koanf:"archive_retention_ms"`
	ShadowRetentionMS  int64 `koanf:"shadow_retention_ms"`
}

// Run is what the harness says about a run, for the run manifest.
type Run struct {
	Seed      string `koanf:"seed"`
	Replicate string `koanf:"replicate"`
	// Labels are KEY=VALUE.
	Labels []string `koanf:"labels"`
	// Manifest is the manifest's file, never empty.
	Manifest string `koanf:"manifest"`
}

// LabelMap returns Labels by key.
func (r Run) LabelMap() map[string]string {
	if len(r.Labels) == 0 {
		return nil
	}
	m := map[string]string{}
	for _, pair := range r.Labels {
		key, value, _ := strings.Cut(pair, "=")
		m[key] = value
	}
	return m
}

// ManifestFile is the file name of the run manifest in the data folder.
const ManifestFile = "manifest.json"

// Trace is the log of the run.
type Trace struct {
	// File is "" for no log.
	File     string `koanf:"file"`
	MaxBytes int64  `koanf:"max_bytes"`
	Keep     int64  `koanf:"keep"`
	// Include is none or content.
	Include string `koanf:"include"`
}

// Log is how the process logs.
type Log struct {
	// Level is debug, info, warn or error.
	Level string `koanf:"level"`
	// Format is text or json.
	Format string `koanf:"format"`
}

// Limits bound one provider.
type Limits struct {
	MemoryBytes     int64 `koanf:"memory_bytes"`
	Pool            int64 `koanf:"pool"`
	CallsInFlight   int64 `koanf:"calls_in_flight"`
	CallMemoryBytes int64 `koanf:"call_memory_bytes"`
	ResponseBytes   int64 `koanf:"response_bytes"`
	RequestBytes    int64 `koanf:"request_bytes"`
	StateWriteBytes int64 `koanf:"state_write_bytes"`
	QueueBytes      int64 `koanf:"queue_bytes"`
	DeadlineMS      int64 `koanf:"deadline_ms"`
	ModeWaitMS      int64 `koanf:"mode_wait_ms"`
}

// Provider is a name under which a configuration can choose a module.
type Provider struct {
	Name string
	Kind abi.ConditionKind
}

// word returns the word with which a configuration chooses p.
func (p Provider) word() string {
	if p.Kind == abi.KindControl {
		return WordCondition
	}
	return WordBackend
}

// Options says where Load looks. The zero value is that of the command line: MEMHOST_CONFIG and ./memhost.yaml, with
// the environment of the process, without flags.
type Options struct {
	// File is the value of --config. It must exist.
	File string
	// Text is parsed instead of the content of File. File's name is still used for messages, and its folder for
	// relative names.
	Text []byte
	// NamedFileOnly ignores ./memhost.yaml. It is for a process that is started in folders that its user has not
	// chosen.
	NamedFileOnly bool
	// Dir is the base for relative names, and the folder of memhost.yaml. "" is the current folder.
	Dir string
	// Environ holds NAME=VALUE pairs, nil for those of the process.
	Environ []string
	// Flags holds the flags that were set, by their names without dashes (FlagKeys lists them) or by the dotted path of
	// a key (memory.backends.honcho.url). Values are strings (parsed like those of the environment), booleans, numbers
	// and lists of strings.
	Flags map[string]any
	// Known lists the built-in providers. If it is nil, the chosen name is not checked.
	Known []Provider
	// Module lists the providers of the module that memory.plugin names: a path if file is true, otherwise the name of
	// a built-in module. If it is nil, a configuration with a plugin must name its provider, and the name is not
	// checked.
	Module func(plugin string, file bool) ([]Provider, error)
	// Check validates a native block against the schema of the module that Module or Known list. It is called only if
	// the block has keys of the published design, so that all its mistakes are reported at once. Each line of its error
	// starts with the provider's name and the path in the block. If it is nil, the other mistakes are reported when the
	// module is loaded.
	Check func(c *Config, block abi.Raw) error
}

// Load reads the configuration.
//
// Errors: invalid_argument with one line for each mistake: where (file and line, variable or flag), the key, what was
// found, what is wanted and the next step. Values that may be credentials are not repeated. A file that cannot be read
// is an error, too; a missing ./memhost.yaml is not. unavailable, if the only mistake is that Options.Module returned
// it.
func Load(o Options) (*Config, error) {
	l := &loader{Options: o, keys: keyTree(), config: &Config{}}
	if l.Environ == nil {
		l.Environ, l.processEnv = os.Environ(), true
	}
	// Each step needs the valid result of the step before.
	for _, step := range []func(){l.readLayers, l.merge, l.settleProvider, l.settleArchive, l.choose, l.finishSecrets, l.finishBlock, l.finishRest} {
		step()
		if err := l.problems.err(l.config.File); err != nil {
			if l.later {
				e := *abi.AsError(err)
				e.Code, e.Retryable = abi.CodeUnavailable, true
				err = &e
			}
			return nil, err
		}
	}
	return l.config, nil
}

type loader struct {
	Options
	keys   *node
	layers []*layer // lowest first
	env    *envReader
	// processEnv is true if the environment is that of the process.
	processEnv bool
	problems   problems
	// later is set if the only problem is that the module is not available now, for example because its registry is
	// down.
	later  bool
	config *Config
}

// layer is one source of values: a part of the configuration's tree, and where each value came from.
type layer struct {
	kind string
	tree map[string]any
	from map[string]Origin // keyed by joinPath
}

// delimiter joins paths inside koanf and in maps. It cannot occur in a key.
const delimiter = "\x00"

func joinPath(path []string) string { return strings.Join(path, delimiter) }

func (l *loader) readLayers() {
	l.layers = []*layer{l.defaults(), l.readFile(), l.readEnv(), l.readFlags()}
	for _, layer := range l.layers[1:] {
		l.check(layer)
	}
}

// merge merges the layers and remembers where each leaf came from.
func (l *loader) merge() {
	l.settleChoice()
	k := koanf.New(delimiter)
	for _, layer := range l.layers {
		// confmap without a delimiter passes the tree on unchanged; it cannot fail.
		if err := k.Load(confmap.Provider(copyTree(layer.tree), ""), nil); err != nil {
			l.problems.add(Origin{}, nil, "cannot be put together: %v", err)
			return
		}
	}
	c := l.config
	if err := k.UnmarshalWithConf("", c, koanf.UnmarshalConf{Tag: "koanf"}); err != nil {
		l.problems.add(Origin{}, nil, "cannot be put together: %v", err)
		return
	}
	c.tree = k.Raw()
	l.problems.tree = c.tree
	c.sources = map[string]Origin{}
	eachLeaf(c.tree, nil, func(path []string, _ any) {
		for _, layer := range slices.Backward(l.layers) {
			if _, ok := lookup(layer.tree, path); ok {
				c.sources[joinPath(path)] = layer.origin(path)
				return
			}
		}
	})
	l.refuseUnknown(c.tree)
}

// origin is where the value at path comes from in a layer, or the nearest enclosing value.
func (l *layer) origin(path []string) Origin {
	for n := len(path); n >= 0; n-- {
		if o, ok := l.from[joinPath(path[:n])]; ok {
			return o
		}
	}
	return Origin{Kind: l.kind}
}

// origin is where the merged value at path came from, or the nearest enclosing value.
func (l *loader) origin(path ...string) Origin {
	for n := len(path); n > 0; n-- {
		for _, layer := range slices.Backward(l.layers) {
			if _, ok := lookup(layer.tree, path[:n]); ok {
				return layer.origin(path)
			}
		}
	}
	return Origin{}
}

// folder is the base for a relative file name: the configuration file's folder if the name is from that file.
func (l *loader) folder(o Origin) string {
	if o.Kind == KindFile && l.config.File != "" {
		return filepath.Dir(l.resolve(l.Dir, l.config.File))
	}
	return l.Dir
}

func (l *loader) resolve(folder, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(folder, name)
}

// finishRest checks what depends on several keys.
func (l *loader) finishRest() {
	c := l.config
	switch at := []string{"memory", "agent_scoped"}; {
	case c.Memory.Scope.AgentID == "" || c.Memory.AgentScoped:
	case l.origin(at...).Kind == KindDefault:
		// An agent in the scope turns agent scopes on. Scopes without an agent keep their ids.
		c.Memory.AgentScoped = true
		set(c.tree, at, true)
		c.sources[joinPath(at)] = l.origin("memory", "scope", "agent_id")
	default:
		l.problems.add(l.origin("memory", "scope", "agent_id"), []string{"memory", "scope", "agent_id"},
			"is set, but agent_scoped is off, so that no scope may name an agent: set memory.agent_scoped: true, or remove it")
	}
	l.finishStore()
	l.finishTelemetry()
	for i, pair := range c.Run.Labels {
		if key, _, ok := strings.Cut(pair, "="); !ok || key == "" {
			at := []string{"run", "labels", strconv.Itoa(i)}
			l.problems.add(l.origin(at...), at, "want KEY=VALUE")
		}
	}
	l.finishTrust()
	if at := []string{"memory", "shadows"}; len(c.Memory.Shadows) > 0 && l.origin(at...).Kind != KindFile {
		l.problems.add(l.origin(at...), at, "may stand in the configuration file only: shadows get every conversation")
	}
	if c.Data.Dir == "" {
		c.sources[joinPath([]string{"data", "dir"})] = Origin{Kind: KindDefault}
	}
	dir, manifest := l.dataDir()
	if c.Server.Runs != "" {
		c.Server.Runs = l.resolve(l.folder(l.origin("server", "runs")), c.Server.Runs)
	}
	if c.Trace.File != "" {
		c.Trace.File = l.resolve(l.folder(l.origin("trace", "file")), c.Trace.File)
	}
	c.Data.Dir, c.Run.Manifest = dir, manifest
}

// dataDir returns the data folder, and the file of the run manifest.
func (l *loader) dataDir() (dir, manifest string) {
	c := l.config
	if dir = l.dataHome(); c.Data.Dir != "" {
		dir = l.resolve(l.folder(l.origin("data", "dir")), c.Data.Dir)
	}
	if manifest = filepath.Join(dir, ManifestFile); c.Run.Manifest != "" {
		manifest = l.resolve(l.folder(l.origin("run", "manifest")), c.Run.Manifest)
	}
	return dir, manifest
}

// settleArchive applies the data folder's default if nothing says whether an archive is kept. With a database the
// default is none.
func (l *loader) settleArchive() {
	archive := []string{"memory", "archive"}
	if l.origin(archive...).Kind != KindDefault || l.config.Store.Postgres.URL != "" {
		return
	}
	dir, _ := l.dataDir()
	on := DefaultsOf(dir).Archive
	l.config.Memory.Archive = on
	for _, tree := range []map[string]any{l.config.tree, l.layers[0].tree} {
		set(tree, archive, on)
	}
}

// settleProvider applies the data folder's default if nothing chooses a provider.
func (l *loader) settleProvider() {
	backend := []string{"memory", WordBackend}
	if v, ok := lookup(l.config.tree, backend); !ok || v != DefaultProvider || l.origin(backend...).Kind != KindDefault {
		return
	}
	dir, manifest := l.dataDir()
	if l.config.Store.Postgres.URL == "" && DefaultsOf(dir).Provider == DefaultProvider && !servedLast(manifest, FormerDefault) {
		return
	}
	condition := []string{"memory", WordCondition}
	for _, tree := range []map[string]any{l.config.tree, l.layers[0].tree} {
		remove(tree, backend...)
		set(tree, condition, FormerDefault)
	}
	delete(l.config.sources, joinPath(backend))
	l.config.sources[joinPath(condition)] = Origin{Kind: KindDefault}
}

// dataHome is the data folder if the configuration names none.
func (l *loader) dataHome() string {
	// xdg reads the environment when the process starts, so Options.Environ is consulted first.
	if home, ok := lookupEnv(l.Environ, "XDG_DATA_HOME"); ok && filepath.IsAbs(home) {
		return filepath.Join(home, "memhost")
	}
	return filepath.Join(xdg.DataHome, "memhost")
}

// Block returns the chosen provider's name, the word that chose it (WordBackend or WordCondition) and its config block:
// canonical JSON, {} if the configuration has none. Preset and defaults are not included yet.
func (c *Config) Block() (name, word string, block abi.Raw) {
	return c.name, c.word, schema.Canonical(c.block)
}

// Scope returns the configured scope as requests name it.
func (c *Config) Scope() abi.MemoryScope {
	s := c.Memory.Scope
	return abi.MemoryScope{RunID: s.RunID, PersonaID: s.PersonaID, BackendNamespace: c.Memory.Namespace,
		AgentID: s.AgentID}
}

// PluginFile reports whether memory.plugin is a file, and returns its path. A value with a slash, or ending in .wasm,
// is a file, unless it starts with oci://. Otherwise it is the name of a built-in module or a module in a registry. A
// path from the configuration file is relative to that file's folder.
func (c *Config) PluginFile() (path string, isFile bool) {
	if !isPluginFile(c.Memory.Plugin) {
		return "", false
	}
	return c.pluginPath, true
}

// registryScheme is the prefix of a module in a registry.
const registryScheme = "oci://"

func isPluginFile(plugin string) bool {
	return !strings.HasPrefix(plugin, registryScheme) &&
		(strings.ContainsAny(plugin, `/\`) || strings.HasSuffix(plugin, ".wasm"))
}
