package server

import (
	"net/http"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// capabilityRoutes return unsupported if the provider lacks the capability.
func (s *Server) capabilityRoutes() []route {
	unsupported := []abi.Code{abi.CodeUnsupported}
	scope := exampleScope()
	return []route{
		{method: http.MethodPost, path: wire.PathReadiness, operation: abi.OpReadiness, tag: tagCapability,
			codes: unsupported, summary: "Ask whether what was recorded can be retrieved",
			about: "Waits up to timeout_ms for ready; 0 is one look. Time over is reported as pending, never as " +
				"ready.",
			request: &abi.ReadinessRequest{Scope: scope, TimeoutMS: 5000}, answer: exampleReadiness(),
			handler: scoped(s, abi.OpReadiness, func(q *abi.ReadinessRequest) abi.MemoryScope {
				return q.Scope
			}, host.Contract.Readiness)},
		{method: http.MethodPost, path: wire.PathInventory, operation: abi.OpInventory, tag: tagCapability,
			codes: unsupported, summary: "Count what a scope holds",
			about: "For comparing two moments: digest is over the native ids with their versions. complete is " +
				"false where the backend cannot list everything.",
			request: &abi.InventoryRequest{Scope: scope}, answer: exampleInventory(),
			handler: scoped(s, abi.OpInventory, func(q *abi.InventoryRequest) abi.MemoryScope {
				return q.Scope
			}, host.Contract.Inventory)},
		{method: http.MethodPost, path: wire.PathFeedback, operation: abi.OpApplyFeedback, tag: tagCapability,
			codes: unsupported, summary: "Correct what memory holds",
			request: exampleFeedback(), answer: &abi.FeedbackReceipt{FeedbackID: "f-1", Status: "applied",
				NativeIDs: []string{"mem_7"}, Warnings: []string{}},
			handler: scoped(s, abi.OpApplyFeedback, func(q *abi.MemoryFeedback) abi.MemoryScope {
				return q.Scope
			}, host.Contract.ApplyFeedback)},
		{method: http.MethodPost, path: wire.PathForget, operation: abi.OpForget, tag: tagCapability,
			codes: append(unsupported, abi.CodeReadOnly), summary: "Remove some of a scope's memory",
			about: "By event_ids, by session_id, by from and to, or by native_ids: exactly one of the four. The " +
				"archive loses it too, and recording it again is conflict, reason forgotten. Asked again it goes on.",
			request: &abi.ForgetRequest{Scope: scope, EventIDs: []string{"e-17"}, Reason: "asked by the user"},
			answer: &abi.ForgetReceipt{Status: abi.ForgetDone, Removed: map[string][]string{"memory": {"mem_7"}},
				DerivedMayRemain: []string{}},
			handler: scoped(s, abi.OpForget, func(q *abi.ForgetRequest) abi.MemoryScope {
				return q.Scope
			}, host.Contract.Forget)},
		{method: http.MethodPost, path: wire.PathMutations, operation: abi.OpNativeMutation, tag: tagCapability,
			codes: unsupported, summary: "Ask for one of the provider's own changes",
			request: &abi.NativeMutation{Scope: scope, Name: "delete_memory",
				Params: map[string]abi.Raw{"id": abi.Raw(`"mem_7"`)}, Reason: "outdated"},
			answer: &abi.MutationReceipt{Status: "applied", NativeIDs: []string{"mem_7"}},
			handler: scoped(s, abi.OpNativeMutation, func(q *abi.NativeMutation) abi.MemoryScope {
				return q.Scope
			}, host.Contract.NativeMutation)},
		{method: http.MethodPost, path: wire.PathProvenance, operation: abi.OpProvenance, tag: tagCapability,
			codes: append(unsupported, abi.CodeNotFound), summary: "Ask where memory came from",
			about:   "By native_id, by event_id, or by from and to: exactly one of the three.",
			request: &abi.ProvenanceRequest{Scope: scope, EventID: "e-1", Limit: 20}, answer: exampleProvenance(),
			handler: scoped(s, abi.OpProvenance, func(q *abi.ProvenanceRequest) abi.MemoryScope {
				return q.Scope
			}, host.Contract.Provenance)},
		{method: http.MethodPost, path: wire.PathNativeQuery, operation: abi.OpNativeQuery, tag: tagCapability,
			codes: unsupported, summary: "Ask one of the provider's own queries",
			about: "For diagnosis: each is logged, and its result never goes into a prompt. The names are in " +
				"/v1/capabilities.",
			request: &abi.NativeQuery{Scope: scope, Name: "list_memories",
				Params: map[string]abi.Raw{"limit": abi.Raw(`5`)}},
			answer: &abi.NativeQueryResult{Name: "list_memories",
				Result: abi.Raw(`[{"id":"mem_7","memory":"Has a cat called Zorvex"}]`)},
			handler: scoped(s, abi.OpNativeQuery, func(q *abi.NativeQuery) abi.MemoryScope {
				return q.Scope
			}, host.Contract.NativeQuery)},
	}
}
