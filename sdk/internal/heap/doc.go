// Package heap is the allocator and garbage collector of guests that TinyGo builds with -gc=custom, as this
// repository's toolchain does.
//
// An operation is short and leaves almost nothing behind. So objects are cut one after the other from memory that is
// known to be free, and memory that the last collection did not mark is free. Collection happens between operations,
// unless package sdk/gc is imported. TinyGo's own collector is slower here: it sorts free memory by length, marks every
// 16 bytes of an object one by one, and scans the state of all memory after each collection.
package heap
