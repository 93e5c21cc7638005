package server

import (
	"context"
	"io"
	"net/http"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// runRoutes show evaluation runs in a folder of the operator's. The slot itself writes nothing there.
func (s *Server) runRoutes() []route {
	unsupported := []abi.Code{abi.CodeUnsupported}
	return []route{
		{method: http.MethodGet, path: wire.PathRuns, operation: wire.OpListRuns, tag: tagSlot, local: true,
			summary: "List the evaluation runs", codes: unsupported,
			about: "The runs in the folder server.runs, the newest first, at most 100, with the verdicts of each as its " +
				"metrics.json has them.",
			answer: &wire.RunList{Runs: []wire.Run{{Name: "demo", Title: "demo", BegunAt: "2026-03-01T09:00:02Z",
				Complete: true, Providers: []string{"full_history", "no_memory"}, Probes: 40, Report: true,
				Verdicts: []wire.RunVerdict{{Name: "leak detector", Outcome: "good",
					Detail: "found 3 of 3 planted leaks"}}}}},
			handler: ask(s, wire.OpListRuns, func(context.Context) (*wire.RunList, error) {
				if s.options.Runs == nil {
					return nil, noRuns()
				}
				return s.options.Runs.List()
			})},
		{method: http.MethodPost, path: wire.PathRunsReport, operation: wire.OpRunReport, tag: tagSlot, local: true,
			summary: "Open a run's report", codes: append(unsupported, abi.CodeNotFound),
			about: "path works once, within a minute and without a token, so that a frame can show it. The report is " +
				"served under Content-Security-Policy: sandbox, which gives it an origin of its own and runs no scripts.",
			request: &wire.RunReportRequest{Name: "demo"},
			answer:  &wire.RunReport{Path: wire.PathPage + "report/KX4ARQWJ3LNZLZH5LCGUU7S46X"},
			handler: call(s, wire.OpRunReport, s.offerReport)},
	}
}

// offerReport opens the report once, so that a missing one is an error here and not in the frame.
func (s *Server) offerReport(_ context.Context, q *wire.RunReportRequest) (*wire.RunReport, error) {
	if s.options.Runs == nil || s.options.Page == nil {
		return nil, noRuns()
	}
	if err := q.Validate(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return s.options.Runs.Report(q.Name) }
	report, err := open()
	if err != nil {
		return nil, err
	}
	_ = report.Close()
	return &wire.RunReport{Path: s.options.Page.Offer(open)}, nil
}

func noRuns() error {
	return abi.NewError(abi.CodeUnsupported, "this slot shows no evaluation runs").WithReason("runs").
		WithHint("server.runs names a folder of runs; a report also takes the page, server.page")
}
