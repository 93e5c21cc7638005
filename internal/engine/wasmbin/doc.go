// Package wasmbin reads and edits the outer structure of a WebAssembly core
// module: its sections, its types, imports, memories and exports, and its
// custom sections. Instruction by instruction, it reads function bodies too.
//
// The bytes come from strangers. Every function here returns an error for
// malformed input, never panics, and allocates in proportion to the input's length,
// whatever the counts in it claim. What is accepted here is not
// thereby valid: compiling the module remains the engine's check.
//
// Raw and Data of a Section are views into the input, which must not be changed while
// they are in use; everything else is a copy.
package wasmbin
