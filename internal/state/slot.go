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

// SlotFile is the file in the data folder that tells other processes where the slot that owns it listens.
const SlotFile = "slot.json"

// SlotInfo is the content of slot.json. It holds no secrets.
type SlotInfo struct {
	// Address is where the slot listens, as host:port.
	Address   string    `json:"address"`
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
	// TokenRequired tells a client that it needs the operator's bearer token.
	TokenRequired bool `json:"token_required"`
	// Child says that the slot is one that an MCP child opened for itself: it ends with its client, and another child
	// may take its place.
	Child bool `json:"child,omitempty"`
	// Folder is the data folder and Config the configuration file, both absolute; Config is "" for none. Provider is
	// the one that the slot was started with, which a swap does not change; Block is a digest of its effective config
	// block. All four are empty in files of older slots.
	Folder   string `json:"folder,omitempty"`
	Config   string `json:"config,omitempty"`
	Provider string `json:"provider,omitempty"`
	Block    string `json:"block,omitempty"`
	// Namespace is the one of the slot's configuration.
	Namespace string `json:"namespace,omitempty"`
	// RunID, PersonaID and AgentID are the scope of the slot's configuration: commands that name none mean that.
	RunID     string `json:"run_id,omitempty"`
	PersonaID string `json:"persona_id,omitempty"`
	AgentID   string `json:"agent_id,omitempty"`
}

// WriteSlot puts slot.json into the folder in one step, readable by its owner only. Only the folder's owner calls it,
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

// ReadSlot reads slot.json. The error is fs.ErrNotExist when there is none.
//
// A slot that was killed leaves its file behind: its reader must expect that nothing, or another program, listens at
// the address. The next Open removes it.
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

// RemoveSlot removes slot.json; a missing file is not an error. The owner calls it before Close.
func RemoveSlot(dir string) error {
	err := os.Remove(filepath.Join(dir, SlotFile))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &Error{Kind: ErrFolder, Message: fmt.Sprintf("removing %s: %s", filepath.Join(dir, SlotFile), err),
		Hint: hintFor(err), Cause: err}
}
