package wire

import "github.com/memhost/memhost/abi"

// BackfillRequest asks a running slot to fill another provider and then to let it serve. All fields except
// EventsPerSecond and Given are as in SwapRequest.
type BackfillRequest struct {
	// Backend or Condition names the provider: exactly one of them.
	Backend   string `json:"backend,omitempty"`
	Condition string `json:"condition,omitempty"`
	// Plugin is a module's file, as the slot's process sees it, or the name of a built-in one. Empty means the built-in
	// module of that provider.
	Plugin string `json:"plugin,omitempty"`
	// Config is the provider's own config block, a JSON object without credentials. It is kept in the data folder, so
	// that the backfill continues after a restart. Absent means the block of the slot's configuration.
	Config abi.Raw `json:"config,omitempty"`
	// EventsPerSecond is the most events a second; 0 means no limit.
	EventsPerSecond float64 `json:"events_per_second,omitempty"`
	// Given fills it from the events that POST /v1/backfill/events brought, not from the archive.
	Given bool `json:"given,omitempty"`
}

// Swap returns the swap at the end of the backfill.
func (x *BackfillRequest) Swap() SwapRequest {
	return SwapRequest{Backend: x.Backend, Condition: x.Condition, Plugin: x.Plugin, Config: x.Config}
}

// Validate checks the same as SwapRequest.Validate, and that the limit is not negative.
func (x *BackfillRequest) Validate() error {
	if x.EventsPerSecond < 0 {
		return abi.NewError(abi.CodeInvalidArgument, "events_per_second: negative")
	}
	swap := x.Swap()
	return swap.Validate()
}
