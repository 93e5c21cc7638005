package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/memhost/memhost/internal/base/wholefile"
)

// SlotFile is the file in the data folder that tells other processes at which address the slot that owns it listens.
const SlotFile = "slot.json"

// SlotInfo is the content of slot.json. It holds no secrets.
type SlotInfo struct {
	// Address is where the slot listens, as host:port.
	Address   string    `json:"address"`
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
	// TokenRequired means that clients need the operator's bearer token.
	TokenRequired bool `json:"token_required"`
	// Child means that an MCP child opened the slot for itself: it ends with its client, and another child may replace
	// it.
	Child bool `json:"child,omitempty"`
	// Folder is the data folder and Config the configuration file, both absolute; Config is "" if there is none.
	// Provider is the provider that the slot was started with, which a swap does not change; Block is a digest of its
	// effective config block. All four are empty in files of older slots.
	Folder   string `json:"folder,omitempty"`
	Config   string `json:"config,omitempty"`
	Provider string `json:"provider,omitempty"`
	Block    string `json:"block,omitempty"`
	// Namespace is the namespace in the slot's configuration.
	Namespace string `json:"namespace,omitempty"`
	// RunID, PersonaID and AgentID are the scope in the slot's configuration: the default of commands that name none.
	RunID     string `json:"run_id,omitempty"`
	PersonaID string `json:"persona_id,omitempty"`
	AgentID   string `json:"agent_id,omitempty"`
}

// WriteSlot writes slot.json to the folder atomically, readable by its owner only. Only the folder's owner may call it,
// after Open.
func WriteSlot(dir string, info SlotInfo) error {
	text, err := json.MarshalIndent(info, "", "  ")
	if err == nil {
		err = wholefile.Write(filepath.Join(dir, SlotFile), append(text, '\n'), 0o600)
	}
	if err != nil {
		return &Error{Kind: ErrFolder, Message: fmt.Sprintf("writing %s: %s", filepath.Join(dir, SlotFile), err),
			Hint: hintFor(err), Cause: err}
	}
	return nil
}

// ReadSlot reads slot.json. The error is fs.ErrNotExist if there is none.
//
// A slot that was killed leaves its file behind, so nothing, or another program, may listen at the address. The next
// Open removes the file.
func ReadSlot(dir string) (SlotInfo, error) {
	path := filepath.Join(dir, SlotFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return SlotInfo{}, &Error{Kind: ErrFolder, Message: fmt.Sprintf("reading %s: %s", path, err), Cause: err}
	}
	var info SlotInfo
	if err := json.Unmarshal(text, &info); err != nil {
		return SlotInfo{}, &Error{Kind: ErrFolder, Message: fmt.Sprintf("%s is not what a slot writes: %s", path, err),
			Hint: "remove it when no slot is running", Cause: err}
	}
	return info, nil
}

// RemoveSlot removes slot.json; a missing file is not an error. The owner must call it before Close.
func RemoveSlot(dir string) error {
	err := os.Remove(filepath.Join(dir, SlotFile))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &Error{Kind: ErrFolder, Message: fmt.Sprintf("removing %s: %s", filepath.Join(dir, SlotFile), err),
		Hint: hintFor(err), Cause: err}
}
