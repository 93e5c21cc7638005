// Package servertest has what the tests of the HTTP door and of its client share.
package servertest

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// Slot is a slot whose operations are answered by Answer: with a pointer to the operation's answer, or an error.
// Request is the operation's argument, nil if it has none. Without Answer, or if it returns nil, the answer is the zero
// value.
type Slot struct {
	Answer func(ctx context.Context, op string, request any) (any, error)
}

var _ host.Contract = (*Slot)(nil)

func reply[A any](ctx context.Context, s *Slot, op string, request any) (*A, error) {
	if s.Answer == nil {
		return new(A), nil
	}
	answer, err := s.Answer(ctx, op, request)
	if err != nil || answer == nil {
		return new(A), err
	}
	return answer.(*A), nil
}

// SetupScope implements host.Contract.
func (s *Slot) SetupScope(ctx context.Context, scope abi.MemoryScope) (*abi.SetupReceipt, error) {
	return reply[abi.SetupReceipt](ctx, s, abi.OpSetupScope, &scope)
}

// RecordEvent implements host.Contract.
func (s *Slot) RecordEvent(ctx context.Context, event *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	return reply[abi.WriteReceipt](ctx, s, abi.OpRecordEvent, event)
}

// RecordEvents implements host.Contract.
func (s *Slot) RecordEvents(ctx context.Context, batch *abi.EventBatch) (*abi.BatchReceipts, error) {
	return reply[abi.BatchReceipts](ctx, s, abi.OpRecordEvents, batch)
}

// Retrieve implements host.Contract.
func (s *Slot) Retrieve(ctx context.Context, request *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	return reply[abi.RetrieveResult](ctx, s, abi.OpRetrieve, request)
}

// FormatContext implements host.Contract.
func (s *Slot) FormatContext(ctx context.Context, request *abi.FormatRequest) (*abi.FormatResult, error) {
	return reply[abi.FormatResult](ctx, s, abi.OpFormatContext, request)
}

// ResetScope implements host.Contract.
func (s *Slot) ResetScope(ctx context.Context, scope abi.MemoryScope) (*abi.ResetReceipt, error) {
	return reply[abi.ResetReceipt](ctx, s, abi.OpResetScope, &scope)
}

// Health implements host.Contract.
func (s *Slot) Health(ctx context.Context) (*abi.BackendHealth, error) {
	return reply[abi.BackendHealth](ctx, s, abi.OpHealth, nil)
}

// SetMode implements host.Contract.
func (s *Slot) SetMode(ctx context.Context, mode *abi.AdapterMode) (*abi.ModeReceipt, error) {
	return reply[abi.ModeReceipt](ctx, s, abi.OpSetMode, mode)
}

// Mode implements host.Contract.
func (s *Slot) Mode(ctx context.Context) (*abi.ModeReceipt, error) {
	return reply[abi.ModeReceipt](ctx, s, wire.OpMode, nil)
}

// Capabilities implements host.Contract.
func (s *Slot) Capabilities(ctx context.Context) (*report.Capabilities, error) {
	return reply[report.Capabilities](ctx, s, wire.OpCapabilities, nil)
}

// Manifest implements host.Contract.
func (s *Slot) Manifest(ctx context.Context) (*report.RunManifest, error) {
	return reply[report.RunManifest](ctx, s, wire.OpManifest, nil)
}

// Readiness implements host.Contract.
func (s *Slot) Readiness(ctx context.Context, request *abi.ReadinessRequest) (*abi.BackendReadiness, error) {
	return reply[abi.BackendReadiness](ctx, s, abi.OpReadiness, request)
}

// Inventory implements host.Contract.
func (s *Slot) Inventory(ctx context.Context, request *abi.InventoryRequest) (*abi.Inventory, error) {
	return reply[abi.Inventory](ctx, s, abi.OpInventory, request)
}

// Provenance implements host.Contract.
func (s *Slot) Provenance(ctx context.Context, request *abi.ProvenanceRequest) (*abi.Provenance, error) {
	return reply[abi.Provenance](ctx, s, abi.OpProvenance, request)
}

// NativeQuery implements host.Contract.
func (s *Slot) NativeQuery(ctx context.Context, request *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	return reply[abi.NativeQueryResult](ctx, s, abi.OpNativeQuery, request)
}

// NativeMutation implements host.Contract.
func (s *Slot) NativeMutation(ctx context.Context, request *abi.NativeMutation) (*abi.MutationReceipt, error) {
	return reply[abi.MutationReceipt](ctx, s, abi.OpNativeMutation, request)
}

// ApplyFeedback implements host.Contract.
func (s *Slot) ApplyFeedback(ctx context.Context, request *abi.MemoryFeedback) (*abi.FeedbackReceipt, error) {
	return reply[abi.FeedbackReceipt](ctx, s, abi.OpApplyFeedback, request)
}

// Forget implements host.Contract.
func (s *Slot) Forget(ctx context.Context, request *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	return reply[abi.ForgetReceipt](ctx, s, abi.OpForget, request)
}
