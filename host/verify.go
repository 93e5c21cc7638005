package host

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/configuration/schema"
)

// VerifyManifest checks that a run manifest is consistent with itself, a module and a configuration, and lists the
// differences. A nil module or config is skipped; Module and Source of config are ignored. A configuration is first
// validated against the module's schema, so it needs a module.
//
// Errors: invalid_argument for a configuration that the module rejects.
func VerifyManifest(m *report.RunManifest, module *Module, config *ProviderConfig) ([]report.ManifestDifference, error) {
	v := &verifier{against: "manifest"}
	v.itself(m)
	if module != nil {
		v.against = "module"
		v.module(m, module)
	}
	if config != nil {
		if module == nil {
			return nil, abi.NewError(abi.CodeInvalidArgument,
				"config: can be verified together with a module only, whose presets and defaults lie under it")
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
	list    []report.ManifestDifference
}

// want records a difference between what the manifest says and what was found.
func (v *verifier) want(field string, says, found any) {
	if !reflect.DeepEqual(says, found) {
		v.list = append(v.list, report.ManifestDifference{Against: v.against, Field: field, Manifest: fmt.Sprint(says),
			Found: fmt.Sprint(found)})
	}
}

func (v *verifier) itself(m *report.RunManifest) {
	v.want("config_hash", m.ConfigHash, configHash(m.Config, m.Profile, m.Frame))
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

func (v *verifier) module(m *report.RunManifest, module *Module) {
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
	lacks, err := lacking(module.Manifest.Requires, m.Config)
	if err != nil {
		v.want("config", "not JSON", "the effective block")
		return
	}
	has := []string{}
	for _, op := range abi.OptionalOperations() {
		if module.has(op) && lacks[op] == "" {
			has = append(has, op)
		}
	}
	v.want("capabilities.capabilities", sorted(m.Capabilities.Capabilities), sorted(has))
}

func (v *verifier) config(m *report.RunManifest, module *Module, c *ProviderConfig) error {
	v.want("provider", m.Provider, c.Name)
	frame, err := frameOf(c.Frame, c.Profile)
	if err != nil {
		return err
	}
	if m.Frame == "" && c.Frame == "" { // the module predates frames
		frame = abi.FrameFull
	}
	if c.Name == m.Provider {
		_, word, block, err := module.choose(c.Name, c.Word, c.Block)
		if err != nil {
			return err
		}
		v.want(word, map[string]string{"backend": m.Backend, "condition": m.Condition}[word], c.Name)
		lacks, err := lacking(module.Manifest.Requires, block)
		if err != nil {
			return err
		}
		v.want("feedback_enabled", m.FeedbackEnabled,
			c.Feedback && module.has(abi.OpApplyFeedback) && lacks[abi.OpApplyFeedback] == "")
		shown := schema.BlankRaw(block)
		v.want("config_hash", m.ConfigHash, configHash(shown, c.Profile, frame))
		v.block(m.Config, shown)
	}
	tokenizer := c.Tokenizer
	if tokenizer == "" {
		tokenizer = "bytes4"
	}
	v.want("profile", cmp.Or(m.Profile, abi.ProfileBest), cmp.Or(c.Profile, abi.ProfileBest))
	v.want("frame", cmp.Or(m.Frame, abi.FrameFull), frame)
	v.want("namespace", m.Namespace, c.Namespace)
	v.want("agent_scoped", m.AgentScoped, c.AgentScoped)
	v.want("tokenizer", m.Tokenizer, tokenizer)
	return nil
}

// block lists the keys of the config block that differ.
func (v *verifier) block(says, found abi.Raw) {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(says, &a) != nil || json.Unmarshal(found, &b) != nil {
		return
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, key := range abi.SortedKeys(all) {
		if schema.Hash(abi.Raw(a[key])) != schema.Hash(abi.Raw(b[key])) {
			v.want("config."+key, textOr(a[key]), textOr(b[key]))
		}
	}
}

func textOr(raw json.RawMessage) string {
	const limit = 200
	switch {
	case raw == nil:
		return "absent"
	case len(raw) > limit:
		return string(raw[:limit]) + "... (" + strconv.Itoa(len(raw)) + " bytes)"
	}
	return string(raw)
}

func sorted(list []string) []string {
	list = append([]string{}, list...)
	slices.Sort(list)
	return list
}
