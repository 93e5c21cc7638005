//go:build race

package brief

const raceEnabled = true
