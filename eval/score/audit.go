package score

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
)

// AuditFile is the file in a run's folder with the audit to use for scoring.
const AuditFile = "audit.json"

// TakeAudit copies an audit of the run's pack to its folder, where later scoring finds it.
//
// Errors: invalid_argument for another pack's audit.
func TakeAudit(folder string, p *pack.Pack, path string) error {
	if _, err := pack.ReadAudit(path, p); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return wrong("%v", err)
		}
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return abi.WrapError(abi.CodeUnavailable, err.Error(), err)
	}
	return rundir.WriteFile(filepath.Join(folder, AuditFile), text)
}

// readAudit returns the run's audit; nil if it has none.
func readAudit(folder string, p *pack.Pack) (*pack.Audit, error) {
	a, err := pack.ReadAudit(filepath.Join(folder, AuditFile), p)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return a, err
}

// Excluded returns the probes that the run's audit excludes.
func Excluded(folder string, p *pack.Pack) (map[string]bool, error) {
	audit, err := readAudit(folder, p)
	out := map[string]bool{}
	if audit != nil {
		for _, e := range audit.Excluded {
			out[e.ProbeID] = true
		}
	}
	return out, err
}

// audited combines the figures before and after an audit.
func audited(a *pack.Audit, before *Metrics) *Audited {
	result := &Audited{By: a.By, Checked: a.Checked, Excluded: a.Excluded, Before: []Unaudited{},
		Primary: before.Primary}
	for i := range before.Columns {
		c := &before.Columns[i]
		for _, b := range c.Budgets {
			figures := map[string]Figure{}
			for _, e := range before.Catalogue {
				if f, there := b.Overall[e.Name]; there && e.Headline {
					figures[e.Name] = f
				}
			}
			result.Before = append(result.Before, Unaudited{c.Label, b.Budget, figures})
		}
	}
	return result
}
