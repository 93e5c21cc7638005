package registrycmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestCommunity: each folder of community/ is in the list, as its manifest has it.
func TestCommunity(t *testing.T) {
	list, err := community()
	if err != nil {
		t.Fatal(err)
	}
	const root = "../../.."
	manifests, err := filepath.Glob(root + "/community/*/manifest.json")
	if err != nil || len(manifests) == 0 {
		t.Fatalf("%v, %d manifests", err, len(manifests))
	}
	for _, path := range manifests {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var manifest struct {
			Providers []communityInfo `json:"providers"`
		}
		if err := json.Unmarshal(text, &manifest); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		source, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range manifest.Providers {
			p.Source = filepath.ToSlash(source)
			if !slices.ContainsFunc(list, func(c communityInfo) bool {
				return c.Name == p.Name && c.Kind == p.Kind && c.Source == p.Source
			}) {
				t.Errorf("community.json lacks %s, %s, %s", p.Name, p.Kind, p.Source)
			}
		}
	}
}
