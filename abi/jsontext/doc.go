// Package jsontext reads and writes JSON as text (RFC 8259), without reflection: what modules and the codecs of package abi are made of.
//
// A Decoder pulls one value after the other out of a text that is in memory as a whole; an Encoder appends one after the other to a buffer. Both are
// for guests first: small when TinyGo builds them, with few allocations, and quick where a WebAssembly module spends its time, which is in strings.
//
// What it takes for JSON is what encoding/json takes for it; tests and fuzzing hold the two to each other. Beyond that: a text may nest at most MaxDepth
// levels, strings that are not UTF-8 are read as they stand (the Encoder writes U+FFFD for what is bad), and half of a surrogate pair is read as U+FFFD.
package jsontext
