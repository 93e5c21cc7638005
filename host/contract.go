package host

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
)

// Contract is what an agent can ask of a memory slot. Slot implements it, and so does a client of a slot's HTTP door.
// Every error is an *abi.Error.
type Contract interface {
	// SetupScope makes a scope ready. It is optional: the first write does it.
	SetupScope(ctx context.Context, scope abi.MemoryScope) (*abi.SetupReceipt, error)
	// RecordEvent delivers a turn once. Recording the same event again returns the first receipt with duplicate set;
	// the same id with other content is a conflict.
	RecordEvent(ctx context.Context, event *abi.MemoryEvent) (*abi.WriteReceipt, error)
	// RecordEvents delivers several turns, each with its own receipt or error. The events of a scope are delivered in
	// order, events of different people concurrently.
	RecordEvents(ctx context.Context, batch *abi.EventBatch) (*abi.BatchReceipts, error)
	// Retrieve asks for context. An outage is an error, never an empty result.
	Retrieve(ctx context.Context, request *abi.RetrieveRequest) (*abi.RetrieveResult, error)
	// FormatContext formats an earlier result again.
	FormatContext(ctx context.Context, request *abi.FormatRequest) (*abi.FormatResult, error)
	// ResetScope erases a scope's memory and starts its next generation. Refused while read-only.
	ResetScope(ctx context.Context, scope abi.MemoryScope) (*abi.ResetReceipt, error)
	// Health checks the provider's health.
	Health(ctx context.Context) (*abi.BackendHealth, error)
	// SetMode makes the slot or a scope read-only or writable; Mode reports the slot's present mode.
	SetMode(ctx context.Context, mode *abi.AdapterMode) (*abi.ModeReceipt, error)
	Mode(ctx context.Context) (*abi.ModeReceipt, error)
	// Capabilities reports what the provider can do; Manifest reports what serves and since when.
	Capabilities(ctx context.Context) (*report.Capabilities, error)
	Manifest(ctx context.Context) (*report.RunManifest, error)

	// The operations below are capabilities: they return unsupported if the provider lacks them.

	Readiness(ctx context.Context, request *abi.ReadinessRequest) (*abi.BackendReadiness, error)
	Inventory(ctx context.Context, request *abi.InventoryRequest) (*abi.Inventory, error)
	Provenance(ctx context.Context, request *abi.ProvenanceRequest) (*abi.Provenance, error)
	NativeQuery(ctx context.Context, request *abi.NativeQuery) (*abi.NativeQueryResult, error)
	NativeMutation(ctx context.Context, request *abi.NativeMutation) (*abi.MutationReceipt, error)
	ApplyFeedback(ctx context.Context, request *abi.MemoryFeedback) (*abi.FeedbackReceipt, error)
	// Forget removes part of a scope's memory, including from the archive, and keeps it from being recorded again. The
	// receipt names what may remain. If the provider cannot forget, the host still does its part and the receipt says
	// partial or unsupported, but a request by native_ids fails. Refused while read-only. Repeating an interrupted
	// request continues it.
	Forget(ctx context.Context, request *abi.ForgetRequest) (*abi.ForgetReceipt, error)
}

// request is a request type of the contract, with its own validation.
type request interface {
	abi.Encodable
	Validate() error
}

// answerOf is a pointer to an answer type.
type answerOf[T any] interface {
	*T
	abi.Encodable
	abi.Decodable
}

// operate runs an operation of the contract that uses one provider once; do fills the answer.
func operate[T any, A answerOf[T]](ctx context.Context, s *Slot, name string, r request,
	do func(ctx context.Context, o *operation, answer A) error) (A, error) {
	return perform(ctx, s, name, r, func(ctx context.Context) (A, error) { return use(ctx, s, name, r, do) })
}

// use runs one use of the serving provider: validate, begin, do, end.
func use[T any, A answerOf[T]](ctx context.Context, s *Slot, name string, r request,
	do func(ctx context.Context, o *operation, answer A) error) (answer A, err error) {
	if err := r.Validate(); err != nil {
		return nil, inOperation(name, err)
	}
	ctx, o, err := s.begin(ctx, name)
	if err != nil {
		return nil, err
	}
	defer o.end(&err)
	if s.following == nil {
		o.origin = OriginOf(ctx)
	}
	answer = new(T)
	if err = do(ctx, o, answer); err != nil {
		return nil, err
	}
	return answer, nil
}
