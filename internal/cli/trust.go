package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/registry"
	"github.com/memhost/memhost/internal/signing"
)

// The largest size of a key file and of a trusted root file, in bytes.
const (
	MaxKeyFile  = 64 << 10
	maxRootFile = 1 << 20
)

// CheckTrust checks a module against modules.trust, and notes in it whose signature admitted it. Built-in modules
// always pass, and without any line all modules do. With offline, signatures are taken from the cache only.
//
// Errors: denied, with the line that would admit the module; those of the registry, if it is asked.
func (a *App) CheckTrust(c *config.Config, m *Module, offline bool) error {
	if len(c.Trust()) == 0 || m.Source == SourceBuiltin {
		return nil
	}
	var lines []config.Trust // the lines about its name
	why := "no line of modules.trust names it"
	name := moduleName(m.Source)
	for _, t := range c.Trust() {
		if t.SHA256 == m.Info.SHA256 {
			return nil
		}
		switch {
		case !t.Names(name):
		case t.Ended(a.Now()):
			why = fmt.Sprintf("the line %q has ended", t.Line)
		default:
			lines = append(lines, t)
		}
	}
	if len(lines) == 0 {
		return notTrusted(m, why)
	}
	signers, err := SignersOf(lines, c.Modules.SigstoreRoot)
	if err != nil {
		return err
	}
	return a.checkSignatures(signers, m, offline)
}

// checkSignatures looks for a signature by one of the signers, first in the cache.
func (a *App) checkSignatures(signers []trustedSigner, m *Module, offline bool) error {
	r, err := registry.ParseReference(m.Source)
	if err != nil {
		return err
	}
	client, err := a.RegistryClient()
	if err != nil {
		return err
	}
	found := client.AttachedBefore(r)
	why := signedByOne(signers, m, found, r.Digest)
	switch {
	case why == "":
		return nil
	case offline:
		e := abi.AsError(notTrusted(m, why+", as the slot's cache has it"))
		return e.WithHint("`memhost pull " + m.Source + "` fetches the signatures that it has now, as the user that the " +
			"slot runs as; " + e.Hint)
	}
	if found, err = client.Attached(context.Background(), r, signing.BundleType); err != nil {
		return err
	}
	if why = signedByOne(signers, m, found, r.Digest); why != "" {
		return notTrusted(m, why)
	}
	return nil
}

// trustedSigner is a signer that a line of modules.trust names.
type trustedSigner struct {
	line config.Trust
	signing.Verifier
}

// SignersOf reads the keys that lines name, and the trusted root if a line names an identity.
func SignersOf(lines []config.Trust, rootFile string) ([]trustedSigner, error) {
	var signers []trustedSigner
	var root *signing.Root
	for _, t := range lines {
		var v signing.Verifier
		var err error
		if t.Identity == "" {
			v, err = readKey(t.Key)
		} else {
			if root == nil {
				root, err = readRoot(rootFile)
			}
			v = signing.Keyless{Root: root, Identity: signing.Identity{Name: t.Identity, Issuer: t.Issuer}}
		}
		if err != nil {
			return nil, InFile(fmt.Sprintf("modules.trust: %q", t.Line), err)
		}
		signers = append(signers, trustedSigner{t, v})
	}
	return signers, nil
}

// signedByOne notes the first of the signers who signed the module, or returns why none did.
func signedByOne(signers []trustedSigner, m *Module, bundles [][]byte, digest string) (why string) {
	bundles = slices.DeleteFunc(slices.Clone(bundles), func(b []byte) bool { // a signed report is not a signature of the module
		kind, _ := signing.Statement(b)
		return kind != signing.Signature
	})
	if len(bundles) == 0 {
		return "it has no signature"
	}
	var by []string
	for _, b := range bundles {
		by = append(by, InALine(signing.Signer(b)))
	}
	why = "it is signed by " + strings.Join(by, " and ")
	for _, s := range signers {
		signer, wrong := signedBy(s, bundles, digest)
		switch {
		case signer != "":
			m.Signer = signer
			return ""
		case wrong != nil:
			why += fmt.Sprintf("; its signature by %s cannot be used: %v", s.name(), wrong)
		default:
			why += ", not by " + s.name()
		}
	}
	return why
}

// name is how errors name a signer.
func (s trustedSigner) name() string {
	if s.line.Key != "" {
		return fmt.Sprintf("%s (%s)", s, s.line.Key)
	}
	return s.String()
}

// signedBy returns the signer of a bundle signed by s, "" if there is none. wrong describes a bundle that claims to be
// by s and is not valid.
func signedBy(s signing.Verifier, bundles [][]byte, digest string) (signer string, wrong error) {
	for _, b := range bundles {
		signer, err := s.Verify(b, signing.Signature, digest)
		if err == nil {
			return signer, nil
		}
		if s.Claims(b) {
			wrong = err
		}
	}
	return "", wrong
}

// notTrusted rejects a module, and gives the line that would admit it.
func notTrusted(m *Module, why string) error {
	e := abi.NewError(abi.CodeDenied, m.Source+": modules.trust does not let it serve: "+why)
	line := "sha256:" + m.Info.SHA256
	if name := moduleName(m.Source); name != "" {
		return e.WithHint(fmt.Sprintf("a line of modules.trust that would let it serve: %q with its signer's key, or %q "+
			"for this module alone", name+" signed by KEY.pub", line))
	}
	return e.WithHint(fmt.Sprintf("the line of modules.trust that would let it serve: %q", line))
}

// moduleName returns oci://HOST/NAME of a module in a registry, "" for any other.
func moduleName(source string) string {
	r, err := registry.ParseReference(source)
	if err != nil {
		return ""
	}
	return registry.Scheme + r.Host + "/" + r.Name
}

func readKey(path string) (*signing.PublicKey, error) {
	text, err := ReadFile(path, MaxKeyFile)
	if err != nil {
		return nil, err
	}
	key, err := signing.ReadPublicKey(text)
	if err != nil {
		return nil, InFile(path, err)
	}
	return key, nil
}

func readRoot(path string) (*signing.Root, error) {
	text, err := ReadFile(path, maxRootFile)
	if err != nil {
		return nil, err
	}
	root, err := signing.ReadRoot(text)
	if err != nil {
		return nil, InFile(path, err)
	}
	return root, nil
}
