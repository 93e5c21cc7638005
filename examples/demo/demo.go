// Package demo carries the example conversation that `make run` records, with questions and the data of two control
// conditions. README.md says what is in it.
package demo

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
)

//go:embed events.jsonl oracle.json profiles.json questions.json
var files embed.FS

// RunID is the run that every event belongs to.
const RunID = "demo"

// Question is asked in a session of its own.
type Question struct {
	PersonaID string `json:"persona_id"`
	SessionID string `json:"session_id"`
	Query     string `json:"query"`
	// AsOf is set only for questions about an earlier date.
	AsOf string `json:"as_of"`
	// Why says what a good memory must show.
	Why string `json:"why"`
}

// Events opens the conversation: one MemoryEvent a line.
func Events() (fs.File, error) { return files.Open("events.jsonl") }

// Oracle is a config block for the condition oracle_ipas.
func Oracle() ([]byte, error) { return files.ReadFile("oracle.json") }

// Profiles is a config block for the condition static_profile.
func Profiles() ([]byte, error) { return files.ReadFile("profiles.json") }

// Questions returns the questions in the order of the file.
func Questions() ([]Question, error) {
	text, err := files.ReadFile("questions.json")
	if err != nil {
		return nil, err
	}
	var list []Question
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("examples/demo/questions.json: %w", err)
	}
	return list, nil
}
