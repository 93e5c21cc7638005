package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/wholefile"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/configuration/schema"
)

// lastServed returns the run manifest of the slot that last served the data folder, nil if there was none.
func lastServed(c *config.Config) *report.RunManifest {
	text, err := ReadFile(c.Run.Manifest, MaxRunManifest)
	if err != nil {
		return nil
	}
	last, err := report.ParseRunManifest(text)
	if err != nil {
		return nil
	}
	return last
}

// BeginFolder writes the defaults of a new data folder, before anything else is in it. began reports whether the folder
// is new.
//
// Errors: invalid_argument if the folder cannot be written.
func BeginFolder(c *config.Config) (began bool, err error) {
	text := config.NewDefaults(c)
	if text == nil {
		return false, nil
	}
	err = os.MkdirAll(c.Data.Dir, 0o700)
	if err == nil {
		err = wholefile.Write(filepath.Join(c.Data.Dir, config.DefaultsFile), text, 0o600)
	}
	if err != nil {
		return false, FileError(c.Data.Dir, err)
	}
	return true, nil
}

// ArchiveNote tells the user where the archive of a data folder is and how long it keeps events.
func ArchiveNote(c *config.Config) string {
	kept := "forever"
	if within := Milliseconds(c.Data.ArchiveRetentionMS); within > 0 {
		kept = "for " + within.String()
		if day := 24 * time.Hour; within%day == 0 {
			kept = "for " + Count(int(within/day), "day")
		}
	}
	return "every recorded event is kept word for word in " + c.Data.Dir + " " + kept + "; memory.archive: false keeps none"
}

// wordOf returns the word (backend or condition) with which a configuration chooses the provider of a run.
func wordOf(m *report.RunManifest) string {
	if m.ConditionKind == abi.KindControl {
		return config.WordCondition
	}
	return config.WordBackend
}

// servedByAnother rejects a folder that another provider served last if the configuration chooses no provider. The
// default provider has none of that memory, and no slot would find what the default records.
func servedByAnother(c *config.Config) error {
	name, word, _ := c.Block()
	last := lastServed(c)
	if last == nil || last.Provider == name || c.Source("memory."+word).Kind != config.KindDefault {
		return nil
	}
	return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("no slot serves %s; %s did so last, and the "+
		"configuration chooses no provider: by default %s would answer, which has another memory",
		c.Data.Dir, last.Provider, name)).WithReason("provider_unnamed").
		WithHint(fmt.Sprintf("start the slot again (memhost run), or say which is meant: --config FILE, --set "+
			"memory.%s=%s or --set memory.%s=%s",
			wordOf(last), last.Provider, word, name))
}

// LastProvider lets the provider that last served the data folder serve again if the configuration chooses no provider.
// It returns the configuration to serve with, the options it is read with, and a note for the user ("" for none).
func (a *App) LastProvider(c *config.Config, o config.Options) (*config.Config, config.Options, string, error) {
	name, word, _ := c.Block()
	last := lastServed(c)
	if last == nil || last.Provider == name {
		return c, o, "", nil
	}
	by := ""
	if last.LoadGeneration > 1 {
		by = ", by a swap"
	}
	if c.Source("memory."+word).Kind != config.KindDefault {
		return c, o, fmt.Sprintf("%s served this folder last%s; the configuration chooses %s, which does not have "+
			"its memory. That is kept: memhost swap %s",
			last.Provider, by, name, last.Provider), nil
	}
	again, err := optionsOf(o, last)
	if err == nil {
		var next *config.Config
		if next, err = config.Load(again); err == nil {
			_, err = a.ResolveChecked(next)
		}
		if err == nil {
			a.Loaded = next
			return next, again, fmt.Sprintf("no provider is chosen: %s serves again, as it did last%s; --%s %s takes "+
				"another", last.Provider, by, word, name), nil
		}
	}
	e := *abi.AsError(err)
	e.Message = last.Provider + " served this folder last and cannot be started without its configuration: " +
		strings.ReplaceAll(e.Message, "\n", "; ")
	e.Hint = fmt.Sprintf("name it with --config FILE; or serve %s, which has another memory: --%s %s", name, word, name)
	return nil, o, "", &e
}

// optionsOf returns o with the provider, module, namespace and block of an earlier run as flags.
func optionsOf(o config.Options, last *report.RunManifest) (config.Options, error) {
	flags := maps.Clone(o.Flags)
	if flags == nil {
		flags = map[string]any{}
	}
	word := wordOf(last)
	flags["memory."+word] = last.Provider
	if last.Module.Source != SourceBuiltin {
		flags["memory.plugin"] = last.Module.Source
	}
	if last.Namespace != "" {
		flags["memory.namespace"] = last.Namespace
	}
	var block map[string]json.RawMessage
	if err := json.Unmarshal(last.Config, &block); err != nil {
		return o, abi.NewError(abi.CodeInvalidArgument, "its last block cannot be read: "+err.Error())
	}
	for key, raw := range block {
		value, err := schema.Decode(abi.Raw(raw), nil)
		if err != nil {
			return o, err
		}
		flags["memory."+word+"s."+last.Provider+"."+key] = value
	}
	o.Flags = flags
	return o, nil
}

// MaxRunManifest is the largest run manifest that is read, in bytes.
const MaxRunManifest = 64 << 20
