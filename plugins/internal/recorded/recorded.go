// Package recorded remembers, in a scope's state, that its backend stored a turn. A backend that was restarted without
// its data answers like one that never had any: this memory distinguishes the two.
package recorded

import "github.com/memhost/memhost/sdk"

// key holds "1" from the first turn of a generation on.
const key = "recorded"

// Note remembers that a turn was stored. It is for operations that may write state.
//
// Errors: those of the state.
func Note(c *sdk.Call) error {
	known, err := Any(c)
	if err != nil || known {
		return err
	}
	return c.Put(key, []byte("1"), sdk.AnyVersion)
}

// Any reports whether a turn was ever stored in the scope's generation.
//
// Errors: those of the state.
func Any(c *sdk.Call) (bool, error) {
	_, version, err := c.Get(key)
	return version > 0, err
}
