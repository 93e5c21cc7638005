package conformance

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// Verdict is the result of a clause or a part of it.
type Verdict string

// The verdicts. Green are Pass and NotApplicable: the latter was either declared in the manifest and confirmed by what
// the kit saw, or found out.
const (
	Pass          Verdict = "pass"
	NotApplicable Verdict = "not_applicable"
	Inconclusive  Verdict = "inconclusive"
	Pending       Verdict = "pending"
	Fail          Verdict = "fail"
)

// Green reports whether the verdict is no complaint about the provider.
func (v Verdict) Green() bool { return v == Pass || v == NotApplicable }

// gravity orders verdicts: the gravest part decides a clause.
func (v Verdict) gravity() int {
	switch v {
	case NotApplicable:
		return 0
	case Pass:
		return 1
	case Pending:
		return 2
	case Inconclusive:
		return 3
	default:
		return 4
	}
}

// Report is what a run of the kit found.
type Report struct {
	Provider string `json:"provider"`
	Kind     string `json:"kind"`
	Module   string `json:"module"`
	Version  string `json:"version"`
	SHA256   string `json:"sha256"`
	// Backend is what health said of it.
	Backend        string `json:"backend"`
	BackendVersion string `json:"backend_version,omitempty"`
	// Verdict is the gravest of the clauses.
	Verdict Verdict        `json:"verdict"`
	Clauses []ClauseReport `json:"clauses"`
	// Ended is why the run ended before its last clause: an outage of the backend, or an interrupt. "" for a whole run.
	Ended string `json:"ended,omitempty"`
	// Notes are the manifest's own on conformance, and what the manifest makes the kit warn of.
	Notes []string `json:"notes,omitempty"`
	MS    int64    `json:"ms"`
	Cost  Cost     `json:"cost"`
}

// ClauseReport is one clause of the contract.
type ClauseReport struct {
	Number  int     `json:"number"`
	Words   string  `json:"words"`
	Verdict Verdict `json:"verdict"`
	// Declared is why the manifest says that the whole clause does not apply.
	Declared string       `json:"declared,omitempty"`
	Parts    []PartReport `json:"parts"`
	MS       int64        `json:"ms"`
	Cost     Cost         `json:"cost"`
}

// PartReport is one check.
type PartReport struct {
	// Name is what a manifest calls it to declare it not applicable.
	Name    string  `json:"name"`
	Words   string  `json:"words"`
	Verdict Verdict `json:"verdict"`
	// Reason says what was seen.
	Reason string `json:"reason"`
	// Resembles are mistakes of authors that are found here, those first that look most alike: of a part that fails.
	Resembles []string `json:"resembles,omitempty"`
	// Declared is why the manifest says that the part does not apply.
	Declared string `json:"declared,omitempty"`
}

// Cost is how much of the backend a run used.
type Cost struct {
	// NativeCalls counts calls that reached the backend.
	NativeCalls int64 `json:"native_calls"`
	// ByRoute counts them by class and route, as "write add".
	ByRoute map[string]int64 `json:"by_route,omitempty"`
	// LLMCalls counts the backend's calls to language models; nil if that is not known.
	LLMCalls *int64 `json:"llm_calls,omitempty"`
}

func (c *Cost) add(other Cost) {
	c.NativeCalls += other.NativeCalls
	for route, n := range other.ByRoute {
		if c.ByRoute == nil {
			c.ByRoute = map[string]int64{}
		}
		c.ByRoute[route] += n
	}
	if other.LLMCalls != nil {
		sum := *other.LLMCalls
		if c.LLMCalls != nil {
			sum += *c.LLMCalls
		}
		c.LLMCalls = &sum
	}
}

// Green reports whether every clause was looked at, and is.
func (r *Report) Green() bool { return r.Ended == "" && r.Verdict.Green() }

// Title is the clause as a name: its number and words.
func (c *ClauseReport) Title() string { return fmt.Sprintf("clause %d: %s", c.Number, c.Words) }

// Bad are the parts that are not green, as lines.
func (c *ClauseReport) Bad() []string {
	var lines []string
	for _, p := range c.Parts {
		if !p.Verdict.Green() {
			line := fmt.Sprintf("%s (%s: %s): %s", p.Verdict, p.Name, p.Words, p.Reason)
			if len(p.Resembles) > 0 {
				line += " (it resembles: " + strings.Join(p.Resembles, "; ") + ")"
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// end fills in what follows from the clauses. why is empty after the last clause. A run that ended before it proves
// nothing, but for a failure that it found.
func (r *Report) end(began time.Time, why string) {
	r.MS, r.Ended, r.Verdict = time.Since(began).Milliseconds(), why, NotApplicable
	if why != "" {
		r.Verdict = Inconclusive
	}
	for _, c := range r.Clauses {
		if c.Verdict.gravity() > r.Verdict.gravity() {
			r.Verdict = c.Verdict
		}
		r.Cost.add(c.Cost)
	}
}

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Errors   int         `xml:"errors,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string      `xml:"classname,attr"`
	Name    string      `xml:"name,attr"`
	Time    string      `xml:"time,attr"`
	Failure *junitProse `xml:"failure,omitempty"`
	Error   *junitProse `xml:"error,omitempty"`
	Skipped *junitProse `xml:"skipped,omitempty"`
}

type junitProse struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the report as JUnit XML, a test case for each clause: fail is a failure, pending and inconclusive
// are errors, not applicable is skipped.
func (r *Report) WriteJUnit(w io.Writer) error {
	seconds := func(ms int64) string { return fmt.Sprintf("%.3f", float64(ms)/1000) }
	suite := junitSuite{Name: "memhost conformance " + r.Provider, Tests: len(r.Clauses), Time: seconds(r.MS)}
	for _, c := range r.Clauses {
		one := junitCase{Class: "conformance." + r.Provider, Name: c.Title(), Time: seconds(c.MS)}
		said := &junitProse{Message: string(c.Verdict), Text: strings.Join(c.Bad(), "\n")}
		switch c.Verdict {
		case Fail:
			suite.Failures++
			one.Failure = said
		case Pending, Inconclusive:
			suite.Errors++
			one.Error = said
		case NotApplicable:
			suite.Skipped++
			said.Text = c.Declared
			one.Skipped = said
		}
		suite.Cases = append(suite.Cases, one)
	}
	if r.Ended != "" {
		suite.Tests++
		suite.Errors++
		suite.Cases = append(suite.Cases, junitCase{Class: "conformance." + r.Provider, Name: "the run came to its end",
			Time: seconds(0), Error: &junitProse{Message: "ended", Text: r.Ended}})
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
