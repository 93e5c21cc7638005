package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Defaults are what applies in a data folder where the configuration is silent. A folder keeps those that it began with
// when a later version has others.
type Defaults struct {
	// Provider is DefaultProvider or FormerDefault.
	Provider string `json:"provider"`
	// Archive: every recorded event is kept word for word. Folders that began before this default existed keep none.
	Archive bool `json:"archive,omitempty"`
}

// newDefaults are those of a folder that begins now, formerDefaults those of one that began before DefaultsFile existed.
var (
	newDefaults    = Defaults{Provider: DefaultProvider, Archive: true}
	formerDefaults = Defaults{Provider: FormerDefault}
)

const (
	// DefaultsFile is the file in a data folder that has its Defaults.
	DefaultsFile = "defaults.json"
	// storeFile is the state in a data folder.
	storeFile = "state.db"
)

// DefaultsOf reads the defaults of a data folder. A file that cannot be read leaves those of a folder without one.
func DefaultsOf(dir string) Defaults {
	var d Defaults
	if text, err := os.ReadFile(filepath.Join(dir, DefaultsFile)); err == nil && json.Unmarshal(text, &d) == nil &&
		d.Provider != "" {
		return d
	}
	if _, err := os.Stat(filepath.Join(dir, storeFile)); err == nil {
		return formerDefaults
	}
	return newDefaults
}

// NewDefaults is the text of DefaultsFile for a data folder that begins now with a configuration, nil for one that has a
// state or the file. A folder that begins without an archive gets none later by default.
func NewDefaults(c *Config) []byte {
	for _, name := range []string{storeFile, DefaultsFile} {
		if _, err := os.Stat(filepath.Join(c.Data.Dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	defaults := newDefaults
	defaults.Archive = c.Memory.Archive
	text, err := json.Marshal(defaults)
	if err != nil {
		return nil
	}
	return append(text, '\n')
}

// servedLast reports whether a provider is that of a run manifest.
func servedLast(manifest, provider string) bool {
	var last struct {
		Provider string `json:"provider"`
	}
	text, err := os.ReadFile(manifest)
	return err == nil && json.Unmarshal(text, &last) == nil && last.Provider == provider
}
