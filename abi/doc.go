// Package abi is the contract between an agent, the memhost host and a memory plugin.
//
// It holds the types that cross the slot (the same JSON at the HTTP door, in package host and between host and guest),
// their error codes and validation, the constants of the wasm binary interface "mh1", and JSON codecs without
// reflection, which are generated and use package wirejson. Host and guest both import this package, so it imports
// nothing that TinyGo cannot build or that would make a guest large: no encoding/json, no reflect, no fmt.
// Types that only a host uses, such as its reports about itself, are in package host/report.
//
// Times are RFC 3339 strings; fields whose names end in MS are milliseconds; sizes are bytes. Every error is an *Error
// with a Code. A request from a caller is read strictly and then checked:
//
//	var e abi.MemoryEvent
//	if err := abi.UnmarshalStrict(body, &e); err != nil {
//		return err // invalid_argument: messages[0].role: ...
//	}
//	if err := e.Validate(); err != nil {
//		return err
//	}
//
// ABI.md in this folder is the specification, from which a guest can be written in another language.
package abi

//go:generate go run -C ../tools ./codecgen -out codec_gen.go ../abi
//go:generate go run -C ../tools ./lookalikes -out ../abi/lookalikes_gen.go
