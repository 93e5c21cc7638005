//go:build !race

package brief

// Race tells whether the race detector is on.
const Race = false
