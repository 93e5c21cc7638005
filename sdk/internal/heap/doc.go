// Package heap is the allocator and collector of guests that TinyGo builds with -gc=custom, as this repository's
// toolchain does. An operation is short and leaves next to nothing behind, so objects are cut one behind the other off
// memory that is known to be free, and free memory is what the last collection did not mark. That is where the next one
// starts from: it collects between operations, unless package sdk/gc is there. TinyGo's own collector sorts free memory
// by length, marks every 16 bytes of an object one by one, and looks through all of the memory's state after each
// collection.
package heap
