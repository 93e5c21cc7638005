// Package c has the sdk for plugins in C, which is one header, memhost.h, and an example. `memhost new --lang c` writes
// both. They are also the reference for plugins in languages without an sdk.
package c

import _ "embed"

// Header is memhost.h.
//
//go:embed memhost.h
var Header []byte

// Example is a plugin of one file in front of the tiny backend (examples/tiny), which includes Header.
//
//go:embed example/plugin.c
var Example []byte
