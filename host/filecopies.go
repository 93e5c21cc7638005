package host

import (
	"context"

	"github.com/memhost/memhost/abi"
)

// OriginFiles is the origin of the queries that copy a memory's files (Options.FileCopies).
const OriginFiles = "files"

// FileCopies keeps copies of memories as files, outside the store. A slot reports to it what happens to the memory of the
// serving provider. All methods must be safe for concurrent use.
type FileCopies interface {
	// Changed is called after each commit that changed the state of a scope. It must be quick.
	Changed(scope abi.MemoryScope)
	// Erasing removes the copy of a scope, before the scope is reset or something of it is forgotten. No copy may be made
	// until done is called, which is when the erasing has ended, however it ended. If the copy cannot be removed, nothing
	// is erased. The scope may be locked: Erasing must not wait for an operation of it.
	Erasing(ctx context.Context, scope abi.MemoryScope) (done func(), err error)
	// Served is called when another provider serves. It must be quick.
	Served()
}

// erasingCopies removes the copy of a scope before something of it is erased. done must be called afterwards.
func (h *Host) erasingCopies(ctx context.Context, scope abi.MemoryScope) (done func(), err error) {
	if h.options.FileCopies == nil {
		return func() {}, nil
	}
	return h.options.FileCopies.Erasing(ctx, scope)
}

// copyChanged reports a commit that changed the state of the operation's scope. Trials and followers have no copies.
func (o *operation) copyChanged() {
	if copies := o.slot.host.options.FileCopies; copies != nil && o.slot.followers != nil && o.scope != nil {
		copies.Changed(o.memoryScope())
	}
}
