package report

import (
	"fmt"

	"github.com/memhost/memhost/abi"
)

// RunArchive says in a run manifest that the slot keeps an archive.
type RunArchive struct {
	// RetentionMS is how long an event is kept, in ms; 0 means for ever.
	RetentionMS int64 `json:"retention_ms"`
}

// ArchiveStats says what the archive holds. All sizes are in bytes.
type ArchiveStats struct {
	// On reports whether the slot keeps what is recorded from now on.
	On          bool  `json:"on"`
	RetentionMS int64 `json:"retention_ms"`
	Events      int64 `json:"events"`
	// Segments are sealed files; SegmentBytes is their size, TextBytes what they hold uncompressed.
	Segments     int64 `json:"segments"`
	SegmentBytes int64 `json:"segment_bytes"`
	TextBytes    int64 `json:"text_bytes"`
	// OpenEvents are not sealed yet; OpenBytes is what they take.
	OpenEvents int64 `json:"open_events"`
	OpenBytes  int64 `json:"open_bytes"`
	// Oldest and Newest are when the first and the last event were archived. Absent in an empty archive.
	Oldest string `json:"oldest,omitempty"`
	Newest string `json:"newest,omitempty"`
}

// ArchiveRequest asks for a page of archived events.
type ArchiveRequest struct {
	// After is the Last of the page before; 0 begins at the oldest event.
	After int64 `json:"after,omitempty"`
	// Limit is a number of events; 0 means 1000, which is also the most.
	Limit int64 `json:"limit,omitempty"`
	// Scope asks for the events of one scope alone, from every generation. Without agent_id it means those of all agents.
	Scope *abi.MemoryScope `json:"scope,omitempty"`
	// EventID or EventIDs, at most 500, ask for these events of Scope alone.
	EventID  string   `json:"event_id,omitempty"`
	EventIDs []string `json:"event_ids,omitempty"`
}

// Validate checks that after and limit are 0 or more, and that event ids come with a scope.
func (x *ArchiveRequest) Validate() error {
	switch {
	case x.After < 0:
		return invalid("after", "negative")
	case x.Limit < 0:
		return invalid("limit", "negative")
	case x.Scope == nil && (x.EventID != "" || len(x.EventIDs) > 0):
		return invalid("scope", "want the scope of the events")
	case x.EventID != "" && len(x.EventIDs) > 0:
		return invalid("event_ids", "want event_id or event_ids, not both")
	case len(x.EventIDs) > MaxPage:
		return invalid("event_ids", fmt.Sprintf("got %d, want at most %d", len(x.EventIDs), MaxPage))
	}
	return checkScope(x.Scope)
}

// ArchivePage is a page of archived events, in the order in which they were accepted. An event that was recorded with
// two providers may occur twice.
type ArchivePage struct {
	Events []abi.MemoryEvent `json:"events"`
	// Last is the number of the last event of the page.
	Last int64 `json:"last"`
	// More is false at the end of the archive.
	More bool `json:"more"`
}

// ArchiveReceipt answers an EventBatch that is added to the archive. Present counts the events that it had.
type ArchiveReceipt struct {
	Added   int64 `json:"added"`
	Present int64 `json:"present"`
}

// ArchiveCheck is what a check of the whole archive found. An archive without problems is sound.
type ArchiveCheck struct {
	Segments int64    `json:"segments"`
	Events   int64    `json:"events"`
	Problems []string `json:"problems"`
}

func invalid(field, problem string) error {
	return abi.NewError(abi.CodeInvalidArgument, field+": "+problem)
}

// checkScope checks the field scope of a request, which may be absent.
func checkScope(scope *abi.MemoryScope) error {
	if scope == nil {
		return nil
	}
	if err := scope.Validate(); err != nil {
		return abi.NewError(abi.CodeInvalidArgument, "scope."+abi.AsError(err).Message)
	}
	return nil
}
