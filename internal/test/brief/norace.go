//go:build !race

package brief

// Race reports whether the race detector is on.
const Race = false
