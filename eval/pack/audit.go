package pack

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/convert"
)

// Audit is a person's review of a pack's gold keys: probes with a wrong key are excluded for all providers. It is a
// separate file, so the pack stays unchanged.
type Audit struct {
	PackSHA256 string `json:"pack_sha256"`
	By         string `json:"by"`
	// Checked is the number of probes that the person reviewed.
	Checked  int        `json:"checked"`
	Excluded []Excluded `json:"excluded"`
}

// Excluded is a probe with a wrong key.
type Excluded struct {
	ProbeID string `json:"probe_id"`
	Why     string `json:"why"`
}

// auditHead are the columns of an audit's sheet. People fill in wrong.
var auditHead = []string{"probe", "label", "question", "answers", "evidence", "stale", "wrong"}

// AuditSheet writes a sheet of probes with their gold: sample probes spread over the pack, or all if sample is 0. It
// returns their number.
func AuditSheet(w io.Writer, p *Pack, sample int) (int, error) {
	step := 1
	if total := p.Manifest.Counts.Probes; sample > 0 && sample < total {
		step = (total + sample - 1) / sample
	}
	sheet := csv.NewWriter(w)
	_ = sheet.Write(auditHead) // Flush returns the error
	seen, n := 0, 0
	for _, persona := range p.Manifest.Personas {
		words := map[string]string{}
		for e, err := range p.Events(persona.PersonaID) {
			if err != nil {
				return 0, err
			}
			for i := range e.Messages {
				if m := &e.Messages[i]; m.Content != nil {
					words[e.EventID] = strings.TrimSpace(words[e.EventID] + "\n" + strings.TrimPrefix(m.Name+": ", ": ") +
						*m.Content)
				}
			}
		}
		for probe, err := range p.Probes(persona.PersonaID) {
			if err != nil {
				return 0, err
			}
			if seen++; (seen-1)%step != 0 {
				continue
			}
			n++
			row := []string{probe.ProbeID, probe.Label, probe.Query, groups(probe.Gold.Answers, nil),
				groups(probe.Gold.Evidence, words), staleText(probe), ""}
			if !probe.Gold.Answerable {
				row[3] = strings.TrimSpace("not answerable " + row[3])
			}
			for i := range row {
				row[i] = unformula(row[i])
			}
			_ = sheet.Write(row)
		}
	}
	sheet.Flush()
	if err := sheet.Error(); err != nil {
		return 0, unreadable(err)
	}
	return n, nil
}

// groups formats gold groups for people: members of a group are joined by "or", and each group is on its own line.
// texts replaces ids by what was said.
func groups(list [][]string, texts map[string]string) string {
	var lines []string
	for _, group := range list {
		var members []string
		for _, member := range group {
			if texts != nil {
				member = "[" + member + "] " + texts[member]
			}
			members = append(members, member)
		}
		lines = append(lines, strings.Join(members, " or "))
	}
	return strings.Join(lines, "\n")
}

func staleText(p *Probe) string {
	var lines []string
	for _, s := range p.Gold.Stale {
		lines = append(lines, fmt.Sprintf("%s until %s", s.Value, s.SupersededAt))
	}
	return strings.Join(lines, "\n")
}

// unformula keeps a spreadsheet from interpreting a text as a formula.
func unformula(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// TakeAudit reads a completed sheet.
//
// Errors: *csv.ParseError; invalid_argument with the row for a probe that the pack does not have.
func TakeAudit(sheet io.Reader, p *Pack, by string) (*Audit, error) {
	known := map[string]bool{}
	for _, persona := range p.Manifest.Personas {
		for probe, err := range p.Probes(persona.PersonaID) {
			if err != nil {
				return nil, err
			}
			known[unformula(probe.ProbeID)] = true
		}
	}
	rows, err := csv.NewReader(convert.UTF8(sheet)).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || !slices.Equal(rows[0], auditHead) {
		return nil, wrong("the sheet: want the columns %s", strings.Join(auditHead, ", "))
	}
	a := &Audit{PackSHA256: p.Manifest.ContentSHA256, By: by, Excluded: []Excluded{}}
	for i, row := range rows[1:] {
		if !known[row[0]] {
			return nil, wrong("the sheet, row %d: %q is no probe of this pack", i+2, row[0])
		}
		a.Checked++
		if why := strings.TrimSpace(row[len(row)-1]); why != "" {
			a.Excluded = append(a.Excluded, Excluded{strings.TrimPrefix(row[0], "'"), why})
		}
	}
	slices.SortFunc(a.Excluded, func(x, y Excluded) int { return strings.Compare(x.ProbeID, y.ProbeID) })
	return a, nil
}

// Write writes the audit as JSON.
func (a *Audit) Write(w io.Writer) error {
	text, err := json.MarshalIndent(a, "", "  ")
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	return err
}

// SHA256 identifies the excluded probes, in hexadecimal.
func (a *Audit) SHA256() string {
	text, _ := json.Marshal(a) // plain values can always be marshaled
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// ReadAudit reads an audit of a pack.
//
// Errors: that of opening the file; invalid_argument for another pack's audit, or an unknown probe.
func ReadAudit(path string, p *Pack) (*Audit, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	a := new(Audit)
	if err := json.Unmarshal(text, a); err != nil {
		return nil, wrong("%s: %v", path, err)
	}
	if a.PackSHA256 != p.Manifest.ContentSHA256 {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("%s is an audit of a pack with the content %.12s, this one has %.12s",
				path, a.PackSHA256, p.Manifest.ContentSHA256))
	}
	return a, nil
}
