package pack

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withPreferences writes the same pack as write, with three preferences of ann.
func withPreferences(t *testing.T, path string, change func(*Preference), probe func(*Probe)) {
	t.Helper()
	w, err := Create(path, Manifest{Name: "small", Builder: Builder{Name: "test"}, Timestamps: "source"})
	require.NoError(t, err)
	w.Persona("ann", "ann")
	for session := 1; session <= 2; session++ {
		require.NoError(t, w.Event(event(session, 1, "a turn")))
	}
	p := question("q", 2, "e2-1")
	p.Attribute, p.Context, p.AsOf = "tea", "work", "2026-03-02T11:00:00Z"
	p.Gold.Answers = [][]string{{"Assam"}}
	if probe != nil {
		probe(p)
	}
	require.NoError(t, w.Probe(p))
	for _, pref := range []Preference{
		{Attribute: "tea", Context: "work", Value: "Sencha", From: "2026-03-01T10:01:00Z", Until: "2026-03-02T10:01:00Z",
			Evidence: []string{"e1-1"}},
		{Attribute: "tea", Value: "Mint", From: "2026-03-01T10:01:00Z", Evidence: []string{"e1-1"}},
		{Attribute: "tea", Context: "work", Value: "Assam", From: "2026-03-02T10:01:00Z", Evidence: []string{"e2-1"}},
	} {
		if change != nil {
			change(&pref)
		}
		require.NoError(t, w.Preference(&pref))
	}
	require.NoError(t, w.Close(nil))
}

func TestPreferencesAreReadAsTheyWereWritten(t *testing.T) {
	for _, name := range []string{"folder", "file" + Archive} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			withPreferences(t, path, nil, nil)
			p, err := Open(path)
			require.NoError(t, err)
			defer p.Close()
			assert.Equal(t, 3, p.Manifest.Counts.Preferences)
			list, err := p.Preferences("ann")
			require.NoError(t, err)
			require.Len(t, list, 3)
			found, err := Lint(p)
			require.NoError(t, err)
			assert.Empty(t, found)

			at := func(text string) time.Time {
				moment, err := time.Parse(time.RFC3339, text)
				require.NoError(t, err)
				return moment
			}
			for _, c := range []struct{ context, at, want string }{
				{"work", "2026-03-01T10:00:00Z", ""}, {"work", "2026-03-01T10:01:00Z", "Sencha"},
				{"work", "2026-03-02T10:01:00Z", "Assam"}, {"home", "2026-03-02T10:01:00Z", "Mint"},
			} {
				value := ""
				if pref := list.InForce("tea", c.context, at(c.at)); pref != nil {
					value = pref.Value
				}
				assert.Equal(t, c.want, value, "%s at %s", c.context, c.at)
			}
			now := list.InForce("tea", "work", at("2026-03-03T00:00:00Z"))
			assert.Equal(t, "Sencha", list.Before(now, at("2026-03-03T00:00:00Z"))[0].Value)
			assert.Equal(t, "Mint", list.Elsewhere(now, at("2026-03-03T00:00:00Z"))[0].Value)
		})
	}
}

func TestPreferencesAreOfTheContentsHash(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pack")
	withPreferences(t, path, nil, nil)
	text, err := os.ReadFile(filepath.Join(path, PreferencesFile))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(path, PreferencesFile), append(text[:len(text)-1:len(text)-1], " \n"...), 0o600))
	_, err = Open(path)
	require.ErrorContains(t, err, "it was changed after it was built")

	// A pack without preferences has the same hash as before they were introduced.
	plain := filepath.Join(dir, "plain")
	write(t, plain, nil)
	p, err := Open(plain)
	require.NoError(t, err)
	assert.Equal(t, "32d6d6f5feb53c19297fb7bab7c4d31bc948a545cc9769ec7eb28889ce1607da", p.Manifest.ContentSHA256)
	list, err := p.Preferences("ann")
	require.NoError(t, err)
	assert.Nil(t, list)
}

func TestLintHoldsPreferencesToEventsAndProbes(t *testing.T) {
	for name, c := range map[string]struct {
		rule       string
		preference func(*Preference)
		probe      func(*Probe)
	}{
		"no evidence":      {"preference", func(p *Preference) { p.Evidence = nil }, nil},
		"no value":         {"preference", func(p *Preference) { p.Value = " " }, nil},
		"no time":          {"preference", func(p *Preference) { p.From = "yesterday" }, nil},
		"a wrong end":      {"preference", func(p *Preference) { p.Until = "2026-02-01T10:00:00Z" }, nil},
		"unknown evidence": {"dangling_evidence", func(p *Preference) { p.Evidence = []string{"e9-9"} }, nil},
		"two at one time":  {"preference_overlap", func(p *Preference) { p.Until = "" }, nil},
		"other gold":       {"preference_not_gold", nil, func(p *Probe) { p.Gold.Answers = [][]string{{"Mint"}} }},
		"nothing in force": {"preference_not_gold", nil, func(p *Probe) { p.Attribute = "shoe_size" }},
		"a telling user":   {"opening_names_preference", nil, func(p *Probe) { p.Opening = "Make me some assam." }},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pack")
			withPreferences(t, path, c.preference, c.probe)
			p, err := Open(path)
			require.NoError(t, err)
			found, err := Lint(p)
			require.NoError(t, err)
			require.NotEmpty(t, found)
			assert.Equal(t, c.rule, found[0].Rule, fmt.Sprint(found))
			assert.True(t, found[0].Fatal)
		})
	}
}
