package server

import (
	"context"
	"net/http"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// archiveRoutes are for the operator of the slot. An agent needs none of them.
func (s *Server) archiveRoutes() []route {
	unsupported := []abi.Code{abi.CodeUnsupported}
	return []route{
		{method: http.MethodGet, path: wire.PathArchive, operation: wire.OpArchiveStats, tag: tagArchive, local: true,
			codes: unsupported, summary: "Tell what the archive holds",
			about: "The archive keeps recorded events word for word. It is no memory: no retrieval comes from it.",
			answer: &report.ArchiveStats{On: true, Events: 4213, Segments: 1, SegmentBytes: 310_000, TextBytes: 1_500_000,
				OpenEvents: 13, OpenBytes: 5_000, Oldest: "2026-03-01T09:00:02Z", Newest: "2026-03-08T17:30:00Z"},
			handler: ask(s, wire.OpArchiveStats, func(ctx context.Context) (*report.ArchiveStats, error) {
				a, err := s.archive()
				if err != nil {
					return nil, err
				}
				return a.ArchiveStats(ctx)
			})},
		{method: http.MethodPost, path: wire.PathArchivePage, operation: wire.OpArchivePage, tag: tagArchive,
			local: true, codes: unsupported, summary: "Read archived events",
			about: "Page by page, in the order in which they were accepted: after is the last of the page before. " +
				"An event that was recorded with two providers may occur twice. scope alone asks for one scope's events, with " +
				"event_id or event_ids for these.",
			request: &report.ArchiveRequest{After: 2000, Limit: 1000},
			answer:  &report.ArchivePage{Events: []abi.MemoryEvent{*exampleEvent()}, Last: 2001},
			handler: call(s, wire.OpArchivePage, func(ctx context.Context, q *report.ArchiveRequest) (*report.ArchivePage,
				error) {
				a, err := s.archive()
				if err != nil {
					return nil, err
				}
				return a.ArchivePage(ctx, q)
			})},
		{method: http.MethodPost, path: wire.PathArchiveEvents, operation: wire.OpArchiveAdd, tag: tagArchive,
			local: true, codes: unsupported, summary: "Add events to the archive",
			about: "Up to 1000, all of them or none. Those that the archive has are counted and left out. Memory is " +
				"not touched.",
			request: &abi.EventBatch{Events: []abi.MemoryEvent{*exampleEvent()}},
			answer:  &report.ArchiveReceipt{Added: 1},
			handler: call(s, wire.OpArchiveAdd, func(ctx context.Context, q *abi.EventBatch) (*report.ArchiveReceipt,
				error) {
				a, err := s.archive()
				if err != nil {
					return nil, err
				}
				return a.ArchiveAdd(ctx, q)
			})},
		{method: http.MethodPost, path: wire.PathPersona, operation: wire.OpErasePersona, tag: tagArchive,
			local: true, codes: append(unsupported, abi.CodeReadOnly), summary: "Erase all that is held of a person",
			about: "Every scope of the person is reset, by the provider that serves or by one that served before, with " +
				"the configuration that it had last. The archive loses the person's events. What happened until now is " +
				"not recorded again. Asked again it goes on.",
			request: &report.PersonaRequest{PersonaID: "ann", Reason: "asked by ann"},
			answer: &report.PersonaReceipt{Status: abi.ForgetDone, ArchivedEvents: 12, MayRemain: []string{},
				Scopes: []report.ErasedScope{{Provider: "full_history", RunID: "run-1", Serving: true, Status: abi.ResetDone,
					Removed: map[string]*int64{}, Remains: []string{}}}},
			handler: call(s, wire.OpErasePersona, func(ctx context.Context, q *report.PersonaRequest) (*report.PersonaReceipt,
				error) {
				switch {
				case s.options.Eraser == nil:
					return nil, abi.NewError(abi.CodeUnsupported, "this slot cannot erase a person")
				case s.options.Scopes.Only != nil:
					return nil, errAllScopes("erasing a person is").WithHint("stop the slot and use `memhost forget " +
						"--persona` on its data folder, or set memory.scopes to any")
				}
				return s.options.Eraser(ctx, q)
			})},
		{method: http.MethodGet, path: wire.PathArchiveCheck, operation: wire.OpArchiveCheck, tag: tagArchive,
			local: true, codes: unsupported, summary: "Check the archive",
			about:  "Reads all of it, and compares every sealed file with its digest.",
			answer: &report.ArchiveCheck{Segments: 1, Events: 4213, Problems: []string{}},
			handler: ask(s, wire.OpArchiveCheck, func(ctx context.Context) (*report.ArchiveCheck, error) {
				a, err := s.archive()
				if err != nil {
					return nil, err
				}
				return a.ArchiveCheck(ctx)
			})},
		{method: http.MethodGet, path: wire.PathBackup, operation: wire.OpBackup, tag: tagArchive, local: true,
			codes: unsupported, summary: "Make a backup of the data folder", media: wire.MediaGzip,
			about: "A tar archive compressed with gzip: the data folder as it is at one moment, while the slot serves. " +
				"Unpacked into an empty folder it is a data folder. Its last member is backup.json, which lists the others " +
				"with their digests: without it the backup is not whole. Content of every scope is in it. A slot in a " +
				"database makes none.",
			handler: http.HandlerFunc(s.backup)},
	}
}

// archive returns the slot's archive for a caller who may name any scope, because it contains all scopes.
func (s *Server) archive() (host.Archive, error) {
	switch {
	case s.options.Archive == nil:
		return nil, abi.NewError(abi.CodeUnsupported, "this slot has no archive").WithReason("archive_off")
	case s.options.Scopes.Only != nil:
		return nil, errAllScopes("the archive is").WithHint("stop the slot and use `memhost archive` on its data folder, " +
			"or set memory.scopes to any")
	}
	return s.options.Archive, nil
}

// errAllScopes rejects a request about all scopes at a door that serves one.
func errAllScopes(what string) *abi.Error {
	return abi.NewError(abi.CodeDenied, "this door serves the configured scope only, and "+what+" of all scopes").
		WithReason("scope")
}
