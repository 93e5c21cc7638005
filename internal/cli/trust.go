package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/registry"
	"github.com/memhost/memhost/internal/signing"
)

// maxKeyFile bounds a key's file, in bytes.
const maxKeyFile = 64 << 10

// checkTrust holds a module against modules.trust, and notes in it whose signature let it pass. Built-in modules always
// pass, and all do where there is no line. With offline nothing but the cache is asked for signatures.
//
// Errors: denied, with the line that would let the module pass; those of the registry, where it is asked.
func (a *app) checkTrust(c *config.Config, m *module, offline bool) error {
	if len(c.Trust()) == 0 || m.source == sourceBuiltin {
		return nil
	}
	var lines []config.Trust // those about its name
	why := "no line of modules.trust names it"
	name := moduleName(m.source)
	for _, t := range c.Trust() {
		if t.SHA256 == m.info.SHA256 {
			return nil
		}
		switch {
		case !t.Names(name):
		case !t.Until.IsZero() && !a.Now().Before(t.Until):
			why = fmt.Sprintf("the line %q has ended", t.Line)
		default:
			lines = append(lines, t)
		}
	}
	if len(lines) == 0 {
		return notTrusted(m, why)
	}
	return a.checkSignatures(lines, m, offline)
}

// checkSignatures looks for a signature by the key of one of the lines, first in the cache.
func (a *app) checkSignatures(lines []config.Trust, m *module, offline bool) error {
	r, err := registry.ParseReference(m.source)
	if err != nil {
		return err
	}
	client, err := a.registryClient()
	if err != nil {
		return err
	}
	found := client.AttachedBefore(r)
	why, err := signedByOne(lines, m, found, r.Digest)
	if err != nil || why == "" || offline {
		return untrusted(m, why, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), pullWithin)
	defer cancel()
	if found, err = client.Attached(ctx, r, signing.BundleType); err != nil {
		return err
	}
	why, err = signedByOne(lines, m, found, r.Digest)
	return untrusted(m, why, err)
}

func untrusted(m *module, why string, err error) error {
	if err != nil || why == "" {
		return err
	}
	return notTrusted(m, why)
}

// signedByOne notes in the module the first key of a line that has signed it; else it says why there is none.
func signedByOne(lines []config.Trust, m *module, bundles [][]byte, digest string) (why string, err error) {
	if len(bundles) == 0 {
		return "it has no signature", nil
	}
	var signers []string
	for _, b := range bundles {
		signers = append(signers, signing.Signer(b))
	}
	why = "it is signed by " + strings.Join(signers, " and ")
	for _, t := range lines {
		key, err := readKey(t.Key)
		if err != nil {
			return "", err
		}
		switch signed, wrong := signedBy(key, bundles, digest); {
		case wrong != nil:
			why += fmt.Sprintf("; its signature by %s cannot be used: %v", t.Key, wrong)
		case !signed:
			why += fmt.Sprintf(", not by %s (%s)", key.ID, t.Key)
		default:
			m.signer = key.ID
			return "", nil
		}
	}
	return why, nil
}

// signedBy reports whether one of the bundles is the key's signature. wrong says what is wrong with one that is the
// key's, where none is right.
func signedBy(key *signing.PublicKey, bundles [][]byte, digest string) (signed bool, wrong error) {
	for _, b := range bundles {
		err := key.Verify(b, digest)
		if err == nil {
			return true, nil
		}
		if signing.Signer(b) == key.ID {
			wrong = err
		}
	}
	return false, wrong
}

// notTrusted refuses a module, and gives the line that would let it pass.
func notTrusted(m *module, why string) error {
	e := abi.NewError(abi.CodeDenied, m.source+": modules.trust does not let it serve: "+why)
	line := "sha256:" + m.info.SHA256
	if name := moduleName(m.source); name != "" {
		return e.WithHint(fmt.Sprintf("a line of modules.trust that would let it serve: %q with its signer's key, or %q "+
			"for this module alone", name+" signed by KEY.pub", line))
	}
	return e.WithHint(fmt.Sprintf("the line of modules.trust that would let it serve: %q", line))
}

// moduleName is oci://HOST/NAME of a module in a registry, "" of any other.
func moduleName(source string) string {
	r, err := registry.ParseReference(source)
	if err != nil {
		return ""
	}
	return registry.Scheme + r.Host + "/" + r.Name
}

func readKey(path string) (*signing.PublicKey, error) {
	text, err := readFile(path, maxKeyFile)
	if err != nil {
		return nil, err
	}
	key, err := signing.ReadPublicKey(text)
	if err != nil {
		return nil, inFile(path, err)
	}
	return key, nil
}
