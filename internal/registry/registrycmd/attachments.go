package registrycmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/registry"
	"github.com/memhost/memhost/internal/signing"
)

// reportType is the media type of a conformance report that is attached to a module.
const reportType = "application/vnd.memhost.conformance.v1+json"

// reportKind is the kind of a signed statement that contains a report.
const reportKind = "https://github.com/memhost/memhost/conformance/v1"

// maxReport bounds a report, in bytes.
const maxReport = 2 << 20

// attachments are the signatures and reports of a module in a registry. Nil for any other module.
type attachments struct {
	Signatures []signature      `json:"signatures"`
	Reports    []attachedReport `json:"reports"`
}

// attachedReport is a conformance report, with its signature if it has one.
type attachedReport struct {
	*conformance.Report
	Signature *signature `json:"signature,omitempty"`
}

// signature is a signature of a module, or of a report about it.
type signature struct {
	// Signer is the key's ID or the identity, as the signature claims. It is only verified if Trust is not empty.
	Signer string `json:"signer"`
	// Trust is the line in modules.trust whose signer made the signature.
	Trust string `json:"trust,omitempty"`
	// Problem is why a signature that claims to be by a signer in modules.trust is not valid.
	Problem string `json:"problem,omitempty"`
}

// attachments fetches the signatures and reports of a module. If the registry does not answer, it returns the
// signatures in the cache.
func (a *commands) attachments(ctx context.Context, m *cli.Module) (*attachments, error) {
	if !registry.IsReference(m.Source) {
		return nil, nil
	}
	r, err := registry.ParseReference(m.Source)
	if err != nil {
		return nil, err
	}
	client, err := a.RegistryClient()
	if err != nil {
		return nil, err
	}
	bundles, err := client.Attached(ctx, r, signing.BundleType)
	var reports [][]byte
	if err == nil {
		reports, err = client.Attached(ctx, r, reportType)
	}
	if err != nil { // the module itself is available
		a.Out.Note("what the registry has for it now cannot be shown: %s", abi.AsError(err).Message)
		bundles = client.AttachedBefore(r)
	}
	found := &attachments{Signatures: []signature{}, Reports: []attachedReport{}}
	var lines []config.Trust
	var root string
	if len(bundles) > 0 {
		lines, root = a.trustLines(r)
	}
	for _, b := range bundles {
		switch kind, says := signing.Statement(b); kind {
		case signing.Signature:
			found.Signatures = append(found.Signatures, checked(b, kind, r, lines, root, a.Now()))
		case reportKind:
			s := checked(b, kind, r, lines, root, a.Now())
			found.addReport(says, &s, m)
		}
	}
	for _, text := range reports {
		found.addReport(text, nil, m)
	}
	return found, nil
}

// addReport adds a report, unless it is not about the module: anyone with write access can attach blobs.
func (a *attachments) addReport(text []byte, by *signature, m *cli.Module) {
	report, err := parseReport(text, m)
	if err == nil {
		a.Reports = append(a.Reports, attachedReport{report, by})
	}
}

// trustLines returns the lines of the configuration that apply to the module, if the configuration can be read, and the
// file of the trusted root.
func (a *commands) trustLines(r registry.Reference) (lines []config.Trust, root string) {
	c, err := a.Config()
	if err != nil {
		a.Out.Note("no signature is checked, since the configuration cannot be used: %s", abi.AsError(err).Message)
		return nil, ""
	}
	for _, t := range c.Trust() {
		if t.Names(registry.Scheme + r.Host + "/" + r.Name) {
			lines = append(lines, t)
		}
	}
	return lines, c.Modules.SigstoreRoot
}

// checked verifies the signature of a statement against the lines.
func checked(
	bundle []byte, kind string, r registry.Reference, lines []config.Trust, root string, now time.Time,
) signature {
	s := signature{Signer: signing.Signer(bundle)}
	for _, t := range lines {
		signers, err := cli.SignersOf([]config.Trust{t}, root)
		if err != nil {
			s.Problem = abi.AsError(err).Message
			continue
		}
		signer, err := signers[0].Verify(bundle, kind, r.Digest)
		switch {
		case err == nil && t.Ended(now):
			s.Problem = fmt.Sprintf("the line %q has ended", t.Line)
		case err == nil:
			return signature{Signer: signer, Trust: t.Line}
		case signers[0].Claims(bundle):
			s.Problem = err.Error()
		}
	}
	return s
}

// lines returns rows for `memhost inspect`.
func (a *attachments) lines() (rows [][2]string) {
	if a == nil {
		return nil
	}
	if len(a.Signatures) == 0 {
		rows = append(rows, [2]string{"signature", "none"})
	}
	for _, s := range a.Signatures {
		rows = append(rows, [2]string{"signature", cli.InALine(s.text())})
	}
	for _, r := range a.Reports {
		rows = append(rows, [2]string{"conformance", cli.InALine(r.text())})
	}
	return rows
}

// text says who signed and whether the signature is trusted.
func (s *signature) text() string {
	switch {
	case s.Trust != "":
		return "by " + s.Signer + ", trusted: " + s.Trust
	case s.Problem != "":
		return "by " + s.Signer + ", does not count: " + s.Problem
	}
	return "by " + s.Signer + ", not checked: modules.trust has no line for it"
}

// text summarizes a report in one line: its verdict, how many clauses have which verdict, the backend, and the signer.
func (r attachedReport) text() string {
	count := map[conformance.Verdict]int{}
	for _, c := range r.Clauses {
		count[c.Verdict]++
	}
	text := fmt.Sprintf("its author says %s: %d of %d clauses pass", r.Verdict, count[conformance.Pass], len(r.Clauses))
	if n := count[conformance.NotApplicable]; n > 0 {
		text += fmt.Sprintf(", %d not applicable", n)
	}
	if r.Backend != "" {
		text += ", before " + cli.Quote(r.Backend)
	}
	if r.Signature == nil {
		return text + "; not signed"
	}
	return text + "; signed " + r.Signature.text()
}

// readReport reads a report to attach to a module. It rejects a report about other bytes.
func readReport(path string, m *cli.Module) ([]byte, error) {
	text, err := cli.ReadFile(path, maxReport)
	if err != nil {
		return nil, err
	}
	if _, err := parseReport(text, m); err != nil {
		return nil, cli.InFile(path, err)
	}
	return text, nil
}

func parseReport(text []byte, m *cli.Module) (*conformance.Report, error) {
	const hint = "`memhost conformance --plugin MODULE --json` makes it"
	r := new(conformance.Report)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, "is no report of the conformance kit: "+err.Error(), err).
			WithHint(hint)
	}
	verdicts := []conformance.Verdict{conformance.Pass, conformance.NotApplicable, conformance.Inconclusive,
		conformance.Pending, conformance.Fail}
	if !slices.Contains(verdicts, r.Verdict) || len(r.Clauses) == 0 {
		return nil, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("is no report of the conformance kit: its verdict is "+
			"%q, on %d clauses", r.Verdict, len(r.Clauses))).WithHint(hint)
	}
	if r.SHA256 != m.Info.SHA256 {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("is a report about the module %q, want %q", r.SHA256, m.Info.SHA256)).
			WithHint(hint)
	}
	return r, nil
}
