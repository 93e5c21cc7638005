// Package wasmbin parses and edits the outer structure of a WebAssembly core module: sections, types, imports,
// memories, exports and custom sections. It can also iterate over the instructions of function bodies.
//
// The input is untrusted. Every function returns an error for malformed input, never panics, and allocates in
// proportion to the input's length, whatever counts it claims. Accepted input is not necessarily valid: the engine
// checks that when it compiles the module.
//
// Raw and Data of a Section are views into the input, which must not be changed while they are in use; everything else
// is a copy.
package wasmbin
