package wire

import (
	"strings"

	"github.com/memhost/memhost/abi"
)

// SwapRequest asks a running slot to exchange its provider.
type SwapRequest struct {
	// Backend or Condition names the provider: exactly one of them.
	Backend   string `json:"backend,omitempty"`
	Condition string `json:"condition,omitempty"`
	// Plugin is a module's file, as the slot's process sees it, or the name of a built-in one. Empty means the built-in
	// module of that provider.
	Plugin string `json:"plugin,omitempty"`
	// Config is the provider's own config block, a JSON object. Absent means the block of the slot's configuration.
	Config abi.Raw `json:"config,omitempty"`
}

// Validate checks that exactly one provider is named and that Config is an object.
func (x *SwapRequest) Validate() error {
	switch {
	case x.Backend == "" && x.Condition == "":
		return abi.NewError(abi.CodeInvalidArgument, "backend: want one of backend and condition, got neither")
	case x.Backend != "" && x.Condition != "":
		return abi.NewError(abi.CodeInvalidArgument, "condition: want one of backend and condition, got both")
	case len(x.Config) > 0 && (!strings.HasPrefix(strings.TrimLeft(string(x.Config), " \t\r\n"), "{") ||
		!abi.ValidJSON(x.Config)):
		return abi.NewError(abi.CodeInvalidArgument, "config: want an object")
	}
	return nil
}
