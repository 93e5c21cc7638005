// Package c contains the sdk for plugins in C: one header, memhost.h, and an example. `memhost new --lang c` writes
// both. They are also the reference for plugins in languages without an sdk.
package c

import _ "embed"

// Header is memhost.h.
//
//go:embed memhost.h
var Header []byte

// Example is a one-file plugin for the tiny backend (examples/tiny). It includes Header.
//
//go:embed example/plugin.c
var Example []byte
