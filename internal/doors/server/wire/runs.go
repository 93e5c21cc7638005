package wire

import "github.com/memhost/memhost/abi"

// RunList is the evaluation runs in the operator's folder, the newest first.
type RunList struct {
	Runs []Run `json:"runs"`
	// LeftOut counts the runs that are not listed.
	LeftOut int64 `json:"left_out,omitempty"`
}

// Run is an evaluation run as described by its run.json and metrics.json. Its texts do not come from the slot.
type Run struct {
	// Name is the name of its folder.
	Name string `json:"name"`
	// Title is the lab's name. Absent in a run that has not been scored.
	Title   string `json:"title,omitempty"`
	BegunAt string `json:"begun_at,omitempty"`
	// Complete is false if a part of the run failed or has not run yet.
	Complete  bool     `json:"complete"`
	Providers []string `json:"providers"`
	Probes    int64    `json:"probes"`
	// Verdicts are the checks of the run and its sealed comparisons.
	Verdicts []RunVerdict `json:"verdicts"`
	// Report is true if there is a report to open.
	Report bool `json:"report"`
	// Problem is why the run cannot be described. Absent if it can.
	Problem string `json:"problem,omitempty"`
}

// RunVerdict is a check with its outcome.
type RunVerdict struct {
	Name string `json:"name"`
	// Outcome is good, bad or open.
	Outcome string `json:"outcome"`
	Detail  string `json:"detail,omitempty"`
}

// RunReportRequest names a run whose report to open.
type RunReportRequest struct {
	// Name is a name from the list.
	Name string `json:"name"`
}

// Validate checks that there is a name.
func (x *RunReportRequest) Validate() error {
	if x.Name == "" {
		return abi.NewError(abi.CodeInvalidArgument, "name: missing")
	}
	return nil
}

// RunReport says where a report is.
type RunReport struct {
	// Path works once, within a minute.
	Path string `json:"path"`
}
