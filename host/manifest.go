package host

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/memhost/memhost/internal/state"
)

// describeRun adds to a manifest what is the run's and not the provider's.
func (h *Host) describeRun(m *abi.RunManifest, p *Provider) {
	m.Clock = "real"
	if h.tape != nil {
		m.Clock = "virtual"
	}
	if m.Smoke = p.config.Smoke; m.Smoke == "" {
		m.Smoke = SmokeNever
	}
	for _, step := range m.Steps {
		if step.Name == stepIsolation || step.Name == stepWriteRead || step.Name == stepGate {
			m.Smokes = append(m.Smokes, abi.SmokeVerdict{Name: step.Name, Verdict: step.Verdict, Detail: step.Detail, MS: step.MS})
		}
	}
	m.FeedbackEnabled = p.config.Feedback && p.module.has(abi.OpApplyFeedback)
	m.Smoke, m.Smokes = cmp.Or(p.config.Smoke, SmokeNever), []abi.SmokeVerdict{}
	for _, step := range m.Steps {
		if slices.Contains(smokeSteps, step.Name) {
			m.Smokes = append(m.Smokes, abi.SmokeVerdict{Name: step.Name, Verdict: step.Verdict, Detail: step.Detail, MS: step.MS})
		}
	}
	m.Seed, m.Replicate, m.Labels = h.options.Run.Seed, h.options.Run.Replicate, h.options.Run.Labels
}

// manifestChanged tells OnManifest.
func (s *Slot) manifestChanged(context.Context) {
	if tell := s.host.options.OnManifest; tell != nil {
		tell()
	}
}

// manifestScopes is how many scopes a manifest lists at most.
const manifestScopes = 10_000

// manifestOf is the manifest of what serves, with the scopes that it has by now.
func (s *Slot) manifestOf(ctx context.Context, v *serving) (*abi.RunManifest, error) {
	m := v.manifest
	m.Scopes = []abi.ScopeMapping{}
	p := v.provider
	err := s.host.eachRecord(ctx, tableScopes, nil, func(stored state.KeyValue) error {
		var r scopeRecord
		switch {
		case json.Unmarshal(stored.Value, &r) != nil || r.Provider != p.name || r.Origin != p.originKey || r.Namespace != p.config.Namespace:
			// Another provider's, or damaged, which is told of where it is used.
		case len(m.Scopes) == manifestScopes:
			m.ScopesLeftOut++
		default:
			m.Scopes = append(m.Scopes, r.mapping())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(m.Scopes, func(a, b abi.ScopeMapping) int {
		return slices.Compare([]string{a.Scope.RunID, a.Scope.PersonaID, a.Scope.AgentID}, []string{b.Scope.RunID, b.Scope.PersonaID, b.Scope.AgentID})
	})
	return &m, nil
}

func (r *scopeRecord) mapping() abi.ScopeMapping {
	m := abi.ScopeMapping{Scope: abi.MemoryScope{RunID: r.RunID, PersonaID: r.PersonaID, BackendNamespace: r.Namespace, AgentID: r.AgentID},
		Generation: r.Generation, NativeScope: map[string]string{}, Since: r.Since}
	var native map[string]string
	if json.Unmarshal(r.NativeScope, &native) == nil && native != nil {
		m.NativeScope = native
	}
	return m
}

// ParseRunManifest reads a manifest.json that a run has written.
//
// Errors: invalid_argument, with reason manifest_version for one of another version and manifest_form for what is none.
func ParseRunManifest(text []byte) (*abi.RunManifest, error) {
	var form struct {
		Manifest       *int64  `json:"manifest"`
		Provider       *string `json:"provider"`
		LoadGeneration *int64  `json:"load_generation"`
	}
	if err := json.Unmarshal(text, &form); err != nil || form.Manifest == nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "is no run manifest").WithReason("manifest_form").
			WithHint("`memhost run` writes one into its data folder: manifest.json")
	}
	if *form.Manifest != abi.RunManifestVersion {
		return nil, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("is a run manifest of version %d, this program reads version %d", *form.Manifest, abi.RunManifestVersion)).
			WithReason("manifest_version").WithHint("verify it with the memhost that wrote it")
	}
	if form.Provider == nil || form.LoadGeneration == nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "is no run manifest: it names no provider that was loaded; a module's own manifest.json is another thing").WithReason("manifest_form")
	}
	m := new(abi.RunManifest)
	if err := abi.Unmarshal(text, m); err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, "is no run manifest: "+abi.AsError(err).Message, err).WithReason("manifest_form")
	}
	return m, nil
}

// ManifestDifference is a place where a run manifest does not agree with what it is held against.
type ManifestDifference struct {
	// Against is manifest (it contradicts itself), module or config.
	Against string `json:"against"`
	// Field is the manifest's: module.sha256.
	Field string `json:"field"`
	// Manifest is what it says there, Found what is.
	Manifest string `json:"manifest"`
	Found    string `json:"found"`
}

// VerifyManifest holds a run manifest against itself, a module and a configuration, and lists what differs. A nil module or config is not looked at; of config,
// Module and Source are not used. A configuration is held against the module's schema first, and so it needs one.
//
// Errors: invalid_argument for a configuration that the module does not take.
func VerifyManifest(m *abi.RunManifest, module *Module, config *ProviderConfig) ([]ManifestDifference, error) {
	v := &verifier{against: "manifest"}
	v.itself(m)
	if module != nil {
		v.against = "module"
		v.module(m, module)
	}
	if config != nil {
		if module == nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "config: can be verified together with a module only, whose presets and defaults lie under it")
		}
		v.against = "config"
		if err := v.config(m, module, config); err != nil {
			return nil, err
		}
	}
	return v.list, nil
}

type verifier struct {
	against string
	list    []ManifestDifference
}

// want notes a difference between what the manifest says and what is.
func (v *verifier) want(field string, says, found any) {
	if !reflect.DeepEqual(says, found) {
		v.list = append(v.list, ManifestDifference{v.against, field, fmt.Sprint(says), fmt.Sprint(found)})
	}
}

func (v *verifier) itself(m *abi.RunManifest) {
	v.want("config_hash", m.ConfigHash, schema.Hash(m.Config))
	word, name := "condition", m.Condition
	if m.Backend != "" {
		word, name = "backend", m.Backend
	}
	if m.Backend != "" && m.Condition != "" {
		v.want("backend, condition", "both are set", "exactly one is")
	}
	v.want(word, name, m.Provider)
	v.want("capabilities.provider", m.Capabilities.Provider, m.Provider)
	v.want("capabilities.condition_kind", m.Capabilities.ConditionKind, m.ConditionKind)
}

func (v *verifier) module(m *abi.RunManifest, module *Module) {
	v.want("module.sha256", m.Module.SHA256, module.SHA256)
	v.want("module.bytes", m.Module.Bytes, module.Bytes)
	v.want("module.name", m.Module.Name, module.Manifest.Name)
	v.want("module.version", m.Module.Version, module.Manifest.Version)
	v.want("abi", m.ABI, module.Manifest.ABI)
	decl, err := module.provider(m.Provider)
	if err != nil {
		v.want("provider", m.Provider, "none of that name")
		return
	}
	kind, note, err := kindOf(decl, m.Config)
	if err != nil {
		v.want("config", "not JSON", "the effective block")
		return
	}
	v.want("condition_kind", m.ConditionKind, kind)
	v.want("note", m.Note, note)
	has := []string{}
	for _, op := range abi.OptionalOperations() {
		if module.has(op) {
			has = append(has, op)
		}
	}
	v.want("capabilities.capabilities", sorted(m.Capabilities.Capabilities), sorted(has))
}

func (v *verifier) config(m *abi.RunManifest, module *Module, c *ProviderConfig) error {
	v.want("provider", m.Provider, c.Name)
	if c.Name == m.Provider {
		_, word, block, err := module.choose(c.Name, c.Word, c.Block)
		if err != nil {
			return err
		}
		v.want(word, map[string]string{"backend": m.Backend, "condition": m.Condition}[word], c.Name)
		shown := schema.BlankRaw(block)
		v.want("config_hash", m.ConfigHash, schema.Hash(shown))
		v.block(m.Config, shown)
	}
	tokenizer := c.Tokenizer
	if tokenizer == "" {
		tokenizer = "bytes4"
	}
	v.want("namespace", m.Namespace, c.Namespace)
	v.want("agent_scoped", m.AgentScoped, c.AgentScoped)
	v.want("tokenizer", m.Tokenizer, tokenizer)
	v.want("feedback_enabled", m.FeedbackEnabled, c.Feedback && module.has(abi.OpApplyFeedback))
	return nil
}

// block lists the keys of the config block that differ.
func (v *verifier) block(says, found abi.Raw) {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(says, &a) != nil || json.Unmarshal(found, &b) != nil {
		return
	}
	keys := names(a)
	for key := range b {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if schema.Hash(abi.Raw(a[key])) != schema.Hash(abi.Raw(b[key])) {
			v.want("config."+key, textOr(a[key]), textOr(b[key]))
		}
	}
}

func textOr(raw json.RawMessage) string {
	const most = 200
	switch {
	case raw == nil:
		return "absent"
	case len(raw) > most:
		return string(raw[:most]) + "... (" + strconv.Itoa(len(raw)) + " bytes)"
	}
	return string(raw)
}

func sorted(list []string) []string {
	list = append([]string{}, list...)
	slices.Sort(list)
	return list
}
