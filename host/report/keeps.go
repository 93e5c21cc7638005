package report

import "github.com/memhost/memhost/abi"

// KeepsNothing reports whether a provider is a control that keeps nothing of what is recorded: it declares no way to
// take events in, and no kind of memory. All its receipts say not_retained.
func KeepsNothing(c *abi.Capabilities) bool {
	return c.ConditionKind == abi.KindControl && len(c.NativeIngestModes) == 0 && len(c.NativeMemoryTypes) == 0
}
