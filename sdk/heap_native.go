//go:build !tinygo

package sdk

// makeRoom is for a guest's heap only.
func makeRoom() {}

// Room is for a guest's heap only.
func Room(int) {}

// Rest is for a guest's heap only.
func Rest() {}
