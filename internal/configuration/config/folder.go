package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Defaults apply in a data folder if the configuration says nothing else. A folder keeps the defaults with which it was
// created, even if a later version has others.
type Defaults struct {
	// Provider is DefaultProvider or FormerDefault.
	Provider string `json:"provider"`
	// Archive keeps every recorded event word for word. Folders that are older than this default keep no archive.
	Archive bool `json:"archive,omitempty"`
}

// newDefaults are those of a new data folder, formerDefaults those of a folder that is older than DefaultsFile.
var (
	newDefaults    = Defaults{Provider: DefaultProvider, Archive: true}
	formerDefaults = Defaults{Provider: FormerDefault}
)

const (
	// DefaultsFile is the file in a data folder with its Defaults.
	DefaultsFile = "defaults.json"
	// storeFile is the state file in a data folder.
	storeFile = "state.db"
)

// DefaultsOf reads the defaults of a data folder. If the file cannot be read, those of a folder without the file apply.
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

// NewDefaults is the text of DefaultsFile for a new data folder with a configuration, nil for a folder that already has
// a state or the file. A folder that is created without an archive does not get one by default later.
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

// servedLast reports whether a run manifest is of this provider.
func servedLast(manifest, provider string) bool {
	var last struct {
		Provider string `json:"provider"`
	}
	text, err := os.ReadFile(manifest)
	return err == nil && json.Unmarshal(text, &last) == nil && last.Provider == provider
}
