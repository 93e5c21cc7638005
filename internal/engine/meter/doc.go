// Package meter rewrites a WebAssembly module so that its host can stop it: the code counts the instructions that it
// executes, and asks the host for more units whenever the count runs out.
//
// Rewrite adds a mutable global with the units left, and an import, Module.Function of type () -> i64, which returns
// new units. At every loop header, and wherever else code could otherwise run without limit, it adds a site:
//
//	global.get $left   i64.const <units>   i64.sub   global.set $left
//	global.get $left   i64.const 0   i64.lt_s
//	if   call $refill   end
//
// where $refill, an added function, calls the import and stores its result. The host's function reads the clock and
// either returns units for the next stretch, or panics to stop the guest. Because it is a Go function, Go's scheduler
// and garbage collector can run there; compiled guest code has no such place.
//
// # Guarantees
//
// A unit is about one instruction (a division counts as several, reads of locals and constants as none; see weight).
// Between two readings of the clock a guest executes at most the units that were handed out, one bulk operation, and a
// remainder that does not depend on its loops:
//
//   - Every loop header is a site, so within one call no path without a site passes the same code twice.
//   - A site charges the heaviest path from the sites before it. Where such a path would exceed stretch units, another
//     site is added.
//   - A function that could be active more than once at a time (a cycle in the graph of calls, where call_indirect may
//     reach what any element segment or ref.func names with its type), or that is large, or has a path of more than
//     inlined units, has a site at its entry. Before calling one at most beforeCall units are uncharged, and its own
//     entry charges them; it returns with at most atExit units uncharged, so unwinding a deep stack is bounded by its
//     depth times atExit.
//   - Other functions are charged to their callers like instructions. Their calls have no cycles, so the
//     remainder is bounded by the size of the module.
//   - memory.fill, copy and init and their table counterparts charge their length before they start. memory.grow,
//     table.grow and calls of imports, except those that RewriteWith is given, set the count to zero, so that the next
//     site looks at the clock whatever they took.
//
// An import must not call back into the module, nor put functions of others into its tables; a module that imports a
// table or a global of functions could do so, and each of its call_indirect counts as a call of an import.
//
// What the guest computes stays the same. It can reach neither global nor import nor added function: every index in it
// is checked against what the original has, and the original must not import from Module itself. The result is valid if
// and only if the original is, which the engine decides.
package meter
