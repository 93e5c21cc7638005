package wire

import "github.com/memhost/memhost/abi"

// MaxImport is the largest file that POST /v1/import takes, in bytes.
const MaxImport = 256 << 20

// MediaZip is an archive, as services export conversations.
const MediaZip = "application/zip"

// ImportCheck describes the content of a file for import. Nothing of it was recorded.
type ImportCheck struct {
	// Confirmation records the file: once, and within fifteen minutes. Absent if the file has no event.
	Confirmation string `json:"confirmation,omitempty"`
	// Source is the service whose format the file has: chatgpt, claude, ...; empty for events, and for messages as a
	// model gets them.
	Source string `json:"source,omitempty"`
	// Title is the source's name for people.
	Title string `json:"title"`
	// Conversations is 0 if the file does not distinguish them.
	Conversations int64 `json:"conversations"`
	Events        int64 `json:"events"`
	Messages      int64 `json:"messages"`
	// First and Last are the times of the first and the last event, RFC 3339. Absent if there is none.
	First string `json:"first,omitempty"`
	Last  string `json:"last,omitempty"`
	// LeftOut lists what is not recorded, one kind per entry, such as "3 tool calls".
	LeftOut []string `json:"left_out"`
	// CannotBeRead counts the damaged parts, and Problems explains the first of them.
	CannotBeRead int64    `json:"cannot_be_read"`
	Problems     []string `json:"problems"`
	// Scopes are those that events of the file name themselves, the first ten. Other events go to the scope of the
	// confirmation, and NeedsScope reports whether there are any.
	Scopes     []abi.MemoryScope `json:"scopes"`
	NeedsScope bool              `json:"needs_scope"`
}

// ImportConfirm records the checked file.
type ImportConfirm struct {
	Confirmation string `json:"confirmation"`
	// Scope is the scope of events that name none. Absent if all do.
	Scope *abi.MemoryScope `json:"scope,omitempty"`
}

// The states of an import.
const (
	// ImportNone: nothing was confirmed since the slot started.
	ImportNone = "none"
	// ImportRecording: events are being recorded.
	ImportRecording = "recording"
	// ImportDone: every event was tried.
	ImportDone = "done"
	// ImportStopped: it ended before the last event, for the reason in Error.
	ImportStopped = "stopped"
)

// ImportProgress is the progress of the latest import.
type ImportProgress struct {
	State string `json:"state"`
	// Events is their number. Recorded arrived now; Known were in the slot before; NotKept went to a memory that keeps
	// nothing, or arrived while it was read-only; Failed did not arrive, or its outcome stayed unknown.
	Events   int64 `json:"events"`
	Recorded int64 `json:"recorded"`
	Known    int64 `json:"known"`
	NotKept  int64 `json:"not_kept"`
	Failed   int64 `json:"failed"`
	// Problems explains the first failures.
	Problems []string `json:"problems"`
	// Error is why it stopped.
	Error *abi.Error `json:"error,omitempty"`
}

// Validate checks that there is a confirmation, and the scope.
func (x *ImportConfirm) Validate() error {
	if x.Confirmation == "" {
		return abi.NewError(abi.CodeInvalidArgument, "confirmation: missing")
	}
	if x.Scope == nil {
		return nil
	}
	return under("scope", x.Scope.Validate())
}
