package cli

import (
	"fmt"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/configuration/config"
)

// Steps shows the steps of a slot's start: to people on standard error, or as log lines.
type Steps struct {
	Out *Output
	Log hclog.Logger // nil: people
	// Quiet limits the log to warnings after the start, too.
	Quiet bool
}

// Pass shows a step that passed.
func (s *Steps) Pass(name, detail string) { s.Tell("pass", name, detail) }

// Tell shows a step, with its verdict unless it passed.
func (s *Steps) Tell(verdict, name, detail string) {
	if s.Log != nil {
		s.Log.Info("step", "step", name, "verdict", verdict, "detail", detail)
		return
	}
	mark := s.Out.Passed()
	if verdict != "pass" {
		mark, detail = s.Out.Open(), verdict+": "+detail
	}
	const indent = 19 // the width of mark, name and the spaces after them
	detail = Printable(detail)
	if s.Out.ErrTTY {
		detail = strings.Join(wrap(detail, max(s.Out.Width-indent, 30)), "\n"+strings.Repeat(" ", indent))
	}
	s.Out.Note("%s %-16s %s", mark, name, detail)
}

// Fail prints which step failed. The log only gets the error.
func (s *Steps) Fail(name string) {
	if s.Log == nil {
		s.Out.Note("%s %s", s.Out.Broken(), name)
	}
}

// Started turns on the log, which is quiet while the steps are shown.
func (s *Steps) Started(log hclog.Logger, c *config.Config) {
	if s.Log == nil && !s.Quiet && c.Source("log.level").Kind == config.KindDefault {
		log.SetLevel(hclog.Info)
	}
}

// Notef shows a warning.
func (s *Steps) Notef(format string, args ...any) {
	if s.Log != nil {
		s.Log.Warn(fmt.Sprintf(format, args...))
		return
	}
	s.Out.Note("  "+format, args...)
}

// Walked shows a step of the host that passed. The last one, the switch to the provider, is shown once the door is
// open.
func (s *Steps) Walked(step report.RunStep, m *Module) {
	if step.Verdict == "fail" || step.Name == "serve" {
		return
	}
	detail := step.Detail
	if step.Name == "load" {
		detail = fmt.Sprintf("%s %s, %s, sha256 %s, %s", m.Name, m.Info.Manifest.Version, Size(m.Info.Bytes),
			m.Info.SHA256[:12], SourceText(m.Source))
	}
	s.Tell(step.Verdict, step.Name, fmt.Sprintf("%s (%.0f ms)", detail, step.MS))
}
