// Package report shows a scored run: one HTML file without outside assets, and Markdown.
//
// All text of a memory is hostile. Tables and plots are rendered here and escaped; the texts of probes travel as
// compressed JSON that the page's one script shows by textContent alone. A Content-Security-Policy in the file allows
// that script and the style by their hashes and nothing else, so that no request leaves the file and no injected script
// runs.
//
// Reading order: report.go (what goes in), view.go (metrics to tables), svg.go (plots), probes.go (texts), page.go (the
// document; page.css and page.js), markdown.go.
package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"

	"github.com/memhost/memhost/eval/model"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/score"
)

// MaxBytes bounds the HTML file. Texts of probes beyond it are left out, which the report says.
const MaxBytes = 50 << 20

// Input is what a report is made of.
type Input struct {
	// Folder is the run's; Run, Metrics and Timings are read from it.
	Folder  string
	Run     *rundir.Run
	Metrics *score.Metrics
	Timings *score.Timings
	Pack    *pack.Pack
	// Judge is what a judge found; nil where none was asked.
	Judge *model.Verdicts
	// Grades are a judge's of conversations; nil where none were graded.
	Grades *model.Grades
	// WithoutText leaves out everything that people or memories said: for a report that may go where the data may not.
	WithoutText bool
}

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// cspHash is a text's hash as a Content-Security-Policy has it.
func cspHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// HTMLFile is the name of the report in a run's folder.
const HTMLFile = "report.html"

// HTML writes the report as one file.
//
// Errors: those of reading the run's journals and texts, and of w.
func HTML(w io.Writer, in Input) error {
	probes, err := collect(in)
	if err != nil {
		return err
	}
	view := viewOf(in)
	view.Chunks, view.LeftOut, err = probes.chunks(MaxBytes - 4<<20)
	if err != nil {
		return err
	}
	index, err := json.Marshal(probes.index)
	if err != nil {
		return err
	}
	view.Index = string(index)
	view.Policy = strings.Join([]string{"default-src 'none'", "script-src " + cspHash(pageJS), "style-src " +
		cspHash(pageCSS),
		"base-uri 'none'", "form-action 'none'"}, "; ")
	return page(view).Render(w)
}
