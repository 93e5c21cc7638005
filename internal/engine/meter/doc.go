// Package meter rewrites a WebAssembly module so that its host can stop it: the code counts what it does, and asks the
// host for more each time the count runs out.
//
// Rewrite adds a mutable global, the units left, and an import, Module.Function of type () -> i64, which gives new
// units. At every loop header, and wherever else code could otherwise run on, it adds a site:
//
//	global.get $left   i64.const <units>   i64.sub   global.set $left
//	global.get $left   i64.const 0   i64.lt_s
//	if   call $refill   end
//
// where $refill, another addition, calls the import and stores what it gives. The host's function looks at the clock,
// hands out units for the next stretch, or panics and with that ends the guest. Being a Go function it is also where
// Go's scheduler and collector get their turn; compiled guest code has no such place.
//
// # What holds
//
// A unit is about one instruction (a division counts as some, reads of locals and constants as none; see weight).
// Between two readings of the clock a guest runs no more than the units that were handed out, a bulk operation, and a
// remainder which does not depend on what its loops do:
//
//   - Every loop header is a site, so no path without a site goes twice through the same code of one call.
//   - A site charges the heaviest path from the sites before it. Where such a path would exceed stretch units, another
//     site is added.
//   - A function that could come to be active twice (a cycle in the graph of calls, where call_indirect may reach what
//     any element segment or ref.func names under its type), or that is large, or has a path of more than inlined
//     units, has a site at its entry. Before calling one at most beforeCall units are uncharged, and its own entry
//     charges them; it returns with at most atExit units uncharged, so unwinding a deep stack is bounded by its depth
//     times atExit.
//   - Other functions are charged to their callers like instructions. They call each other in no cycle, so the
//     remainder is bounded by the size of the module.
//   - memory.fill, copy and init and their like for tables charge their length before they begin. memory.grow,
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
