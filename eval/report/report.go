// Package report presents a scored run: as one HTML file without external assets, and as Markdown.
//
// All text from memories is untrusted. Tables and plots are rendered and escaped here; the texts of probes are
// compressed JSON, which the page's only script displays through textContent. A Content-Security-Policy in the file
// allows that script and the style by their hashes and nothing else, so that no request leaves the file and no injected
// script runs.
//
// Reading order: report.go (the input), view.go (metrics to tables), svg.go (plots), probes.go (texts), page.go (the
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

// MaxBytes limits the size of the HTML file. Texts of probes beyond it are left out, and the report says so.
const MaxBytes = 50 << 20

// Input is the input of a report.
type Input struct {
	// Folder is the run's folder; Run, Metrics and Timings were read from it.
	Folder  string
	Run     *rundir.Run
	Metrics *score.Metrics
	Timings *score.Timings
	Pack    *pack.Pack
	// Judge is a judge's result; nil if none was asked.
	Judge *model.Verdicts
	// Grades are a judge's grades of conversations; nil if there are none.
	Grades *model.Grades
	// WithoutText leaves out everything that people or memories said, for reports that may be published although the
	// data may not.
	WithoutText bool
}

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// cspHash formats a text's hash for a Content-Security-Policy.
func cspHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// HTMLFile is the file name of the report in a run's folder.
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
