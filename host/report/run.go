package report

import "github.com/memhost/memhost/abi"

// RunManifestVersion is the form of RunManifest that this package writes and reads.
const RunManifestVersion = 1

// RunManifest records what served a run: which module, which configuration, since when.
type RunManifest struct {
	// Manifest is RunManifestVersion.
	Manifest int64  `json:"manifest"`
	Provider string `json:"provider"`
	// Exactly one of Backend and Condition is set: the word by which the configuration chose the provider.
	Backend       string            `json:"backend,omitempty"`
	Condition     string            `json:"condition,omitempty"`
	ConditionKind abi.ConditionKind `json:"condition_kind"`
	Note          string            `json:"note,omitempty"`
	Module        RunModule         `json:"module"`
	ABI           string            `json:"abi"`
	Engine        string            `json:"engine"`
	// Profile is source-design or best. Absent in manifests from before there were profiles.
	Profile abi.Profile `json:"profile,omitempty"`
	// Frame is full, compact or minimal: that of formatted contexts, as far as the module has frames. Absent in manifests
	// from before there were frames, which means full.
	Frame abi.Frame `json:"frame,omitempty"`
	// ConfigHash is the SHA-256 (hex) of Config in canonical JSON. If the frame is not full, or the profile not best,
	// it is that of {"config": Config, "frame": "compact", "profile": "source-design"}, with those that differ.
	ConfigHash string `json:"config_hash"`
	// Config is the effective config block; a secret stands as its name only.
	Config      abi.Raw `json:"config"`
	Namespace   string  `json:"namespace,omitempty"`
	AgentScoped bool    `json:"agent_scoped"`
	Tokenizer   string  `json:"tokenizer"`
	Durability  string  `json:"durability"`
	// Clock is real, or virtual while a cassette is recorded or replayed.
	Clock string `json:"clock"`
	// FeedbackEnabled reports whether apply_feedback is available: the provider exports it and the configuration
	// enables it.
	FeedbackEnabled bool `json:"feedback_enabled"`
	// Archive is absent if the slot keeps none.
	Archive *RunArchive `json:"archive,omitempty"`
	// Followers are the other providers that get what is recorded: shadows, and one that is being filled. None of them
	// answers an agent.
	Followers []RunFollower `json:"followers,omitempty"`
	// Warnings are of the configuration. Each begins with a stable code and a colon: "test_sessions_empty: ...".
	Warnings []string `json:"warnings,omitempty"`
	// Seed, Replicate and Labels are as the harness gave them; the host does not use them.
	Seed      string            `json:"seed,omitempty"`
	Replicate string            `json:"replicate,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Capabilities hold the native memory types, ingest modes and query modes, too.
	Capabilities Capabilities `json:"capabilities"`
	// LoadGeneration counts the providers that this slot has served, from 1.
	LoadGeneration int64             `json:"load_generation"`
	ServingSince   string            `json:"serving_since"`
	Health         abi.BackendHealth `json:"health"`
	HostVersion    string            `json:"host_version"`
	HostCommit     string            `json:"host_commit,omitempty"`
	Steps          []RunStep         `json:"steps"`
	// Smoke is auto, always or never: when the smoke tests run. Smokes are their verdicts.
	Smoke  string         `json:"smoke,omitempty"`
	Smokes []SmokeVerdict `json:"smokes"`
	// Scopes lists scopes that have been set up, with the backend's names for them: at most 100. ScopesLeftOut counts
	// the others: GET /v1/scopes lists all in pages.
	Scopes        []ScopeMapping `json:"scopes"`
	ScopesLeftOut int64          `json:"scopes_left_out,omitempty"`
}

// ScopeMapping is how the backend addresses a scope's memory.
type ScopeMapping struct {
	Scope      abi.MemoryScope `json:"scope"`
	Generation int64           `json:"generation"`
	// NativeScope is from setup_scope: name of the concept (workspace, group_id, ...) to id. Empty until the generation
	// has been set up.
	NativeScope map[string]string `json:"native_scope"`
	Since       string            `json:"since,omitempty"`
}

// SmokeVerdict is the outcome of one smoke test: pass, fail, pending, inconclusive or skipped.
type SmokeVerdict struct {
	Name    string  `json:"name"`
	Verdict string  `json:"verdict"`
	Detail  string  `json:"detail,omitempty"`
	MS      float64 `json:"ms"`
}

// RunModule identifies a module's bytes.
type RunModule struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// SHA256 is of the file as given, in hex.
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	// Source is builtin, the path as the operator gave it, or the name in a registry with its digest.
	Source string `json:"source"`
	// Signer is whose signature let the module serve: sha256:<hex> of a public key, or an identity, "NAME issued by
	// URL". Absent if no signature is required.
	Signer string `json:"signer,omitempty"`
}

// RunStep is one step of the swap flow with its verdict: pass, fail, pending, inconclusive or skipped.
type RunStep struct {
	Name    string  `json:"name"`
	Verdict string  `json:"verdict"`
	MS      float64 `json:"ms"`
	Detail  string  `json:"detail,omitempty"`
}
