//go:build !tinygo

package sdk

// makeRoom does nothing outside a guest.
func makeRoom() {}

// Room does nothing outside a guest.
func Room(int) {}

// Rest does nothing outside a guest.
func Rest() {}
