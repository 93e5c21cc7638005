// Package abi is the contract between an agent, the memhost host and a memory plugin.
//
// It holds the types that cross the slot (the same JSON at the HTTP door, in package host and between host and guest),
// their error codes and validation, the constants of the wasm binary interface "mh1", and JSON codecs without
// reflection, generated over package wirejson. Host and guest both import this package, so it imports nothing that
// TinyGo cannot build or that would make a guest large: no encoding/json, no reflect, no fmt of its own.
// What only a host says, about itself and what it keeps, is in package host/report.
//
// ABI.md beside this file is the specification from which a guest can be written in another language.
package abi

//go:generate go run -C ../tools ./codecgen -out codec_gen.go ../abi
//go:generate go run -C ../tools ./lookalikes -out ../abi/lookalikes_gen.go
