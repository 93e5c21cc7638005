package signing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// A keyless signature is by a key that its owner made for this one signature and then threw away. In place of the key
// one trusts an identity: an issuer (Sigstore's Fulcio) has seen a token of that identity, and says in a certificate of
// some minutes that the key is the identity's. That it was used in those minutes, and that all of it was done in
// public, logs and clocks say. So a signature is valid where
//
//  1. the envelope is signed by the certificate's key;
//  2. the certificate is in a log of certificates (its SCT);
//  3. the signature is in a log of signatures (Rekor), with a proof of that;
//  4. a log or a clock says at what time it was made;
//  5. the certificate was valid then, as were those of its issuer, and the log of signatures counted then.
//
// The keys of issuers, logs and clocks are those of a Root. Versions 1 and 2 of Rekor are known.

// Identity is whom a certificate is for.
type Identity struct {
	// Name is an e-mail address or a URI, as that of a workflow:
	// https://github.com/team/mem/.github/workflows/release.yml@refs/tags/v1.
	Name string
	// Issuer is the URL of who has checked that: https://token.actions.githubusercontent.com.
	Issuer string
}

func (i Identity) String() string { return i.Name + " issued by " + i.Issuer }

// Keyless wants a signature of an identity.
type Keyless struct {
	Root *Root
	// Identity is whose; * at the end of its name stands for anything.
	Identity Identity
}

// String implements Verifier.
func (k Keyless) String() string { return k.Identity.String() }

// Claims implements Verifier.
func (k Keyless) Claims(text []byte) bool {
	i, ok := claimed(text)
	return ok && k.matches(i)
}

func (k Keyless) matches(i Identity) bool {
	if i.Issuer != k.Identity.Issuer {
		return false
	}
	if start, ok := strings.CutSuffix(k.Identity.Name, "*"); ok {
		return strings.HasPrefix(i.Name, start)
	}
	return i.Name == k.Identity.Name
}

// Verify implements Verifier. The signer is the identity with its whole name.
func (k Keyless) Verify(text []byte, kind, digest string) (signer string, err error) {
	i, err := k.Root.Verify(text, kind, digest)
	if err != nil {
		return "", err
	}
	if !k.matches(i) {
		return "", ErrOtherKey
	}
	return i.String(), nil
}

// claimed is the identity in a bundle's certificate, which is not checked.
func claimed(text []byte) (Identity, bool) {
	var b bundle
	if json.Unmarshal(text, &b) != nil {
		return Identity{}, false
	}
	c, err := x509.ParseCertificate(b.VerificationMaterial.certificate())
	if err != nil {
		return Identity{}, false
	}
	i, err := identityOf(c)
	return i, err == nil
}

// maxEntries bounds how many log entries and timestamps a signature may have.
const maxEntries = 32

// material is verificationMaterial of a bundle. An int64 is a string in its JSON.
type material struct {
	PublicKey *struct {
		Hint string `json:"hint"`
	} `json:"publicKey,omitempty"`
	Certificate *rawCertificate `json:"certificate,omitempty"`
	// Chain is what bundles before 0.3 have instead of Certificate. Only its first certificate counts.
	Chain *struct {
		Certificates []rawCertificate `json:"certificates"`
	} `json:"x509CertificateChain,omitempty"`
	TLogEntries []logEntry `json:"tlogEntries,omitempty"`
	Timestamps  *struct {
		RFC3161 []struct {
			SignedTimestamp []byte `json:"signedTimestamp"`
		} `json:"rfc3161Timestamps"`
	} `json:"timestampVerificationData,omitempty"`
}

// certificate is that of the signer, nil where a key signed.
func (m *material) certificate() []byte {
	switch {
	case m.Certificate != nil:
		return m.Certificate.RawBytes
	case m.Chain != nil && len(m.Chain.Certificates) > 0:
		return m.Chain.Certificates[0].RawBytes
	}
	return nil
}

// Verify checks that a bundle is a keyless statement of a kind about the manifest with this digest, and says whose. An
// error says what is wrong with it.
func (r *Root) Verify(text []byte, kind, digest string) (Identity, error) {
	var b bundle
	if err := json.Unmarshal(text, &b); err != nil {
		return Identity{}, fmt.Errorf("it is no JSON of the form: %w", err)
	}
	identity, payload, err := r.verifyBundle(&b)
	if err != nil {
		return Identity{}, err
	}
	return identity, checkStatement(b.DSSEEnvelope.PayloadType, payload, kind, digest)
}

// verifyBundle checks everything but what is stated.
func (r *Root) verifyBundle(b *bundle) (identity Identity, payload []byte, err error) {
	payload, signature, err := b.envelope()
	if err != nil {
		return Identity{}, nil, err
	}
	certificate, err := x509.ParseCertificate(b.VerificationMaterial.certificate())
	if err != nil {
		return Identity{}, nil, fmt.Errorf("it has no certificate that can be read: %w", err)
	}
	key, ok := certificate.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return Identity{}, nil, errors.New("its certificate's key is not of ECDSA on P-256")
	}
	signed := dsse.PAE(b.DSSEEnvelope.PayloadType, payload)
	if !isSignedBy(key, signed, signature) {
		return Identity{}, nil, errors.New("its envelope is not signed by its certificate")
	}
	times, err := r.timesOf(&b.VerificationMaterial, signatureOf{signed, payload, signature, certificate})
	if err != nil {
		return Identity{}, nil, err
	}
	if err := r.checkCertificate(certificate, times); err != nil {
		return Identity{}, nil, err
	}
	identity, err = identityOf(certificate)
	return identity, payload, err
}

// timesOf checks logs and clocks, and gives the times at which they saw the signature: at least one.
func (r *Root) timesOf(m *material, s signatureOf) ([]time.Time, error) {
	if len(m.TLogEntries) == 0 {
		return nil, errors.New("it is in no transparency log")
	}
	if len(m.TLogEntries) > maxEntries || m.Timestamps != nil && len(m.Timestamps.RFC3161) > maxEntries {
		return nil, fmt.Errorf("it has more than %d log entries or timestamps", maxEntries)
	}
	var times []time.Time
	var logs []logKey
	for _, e := range m.TLogEntries {
		log, at, err := r.verifyEntry(&e, s)
		if err != nil {
			return nil, err
		}
		logs = append(logs, log)
		if !at.IsZero() {
			times = append(times, at)
		}
	}
	if m.Timestamps != nil {
		for _, t := range m.Timestamps.RFC3161 {
			at, err := r.verifyTimestamp(t.SignedTimestamp, s.signature)
			if err != nil {
				return nil, fmt.Errorf("its timestamp: %w", err)
			}
			times = append(times, at)
		}
	}
	if len(times) == 0 {
		return nil, errors.New("neither a log nor a clock says when it was made")
	}
	for _, log := range logs {
		for _, at := range times {
			if !log.valid.contains(at) {
				return nil, errors.New("its transparency log did not count at the time")
			}
		}
	}
	return times, nil
}

// checkCertificate checks that an issuer of the root has made the certificate, that it was valid at each of the times,
// and that it is in a log of certificates.
func (r *Root) checkCertificate(certificate *x509.Certificate, times []time.Time) error {
	wrong := errors.New("no issuer of the trusted root counted at the time")
	for _, issuer := range r.issuers {
		chain, err := issuer.chainAt(certificate, times)
		if err != nil {
			wrong = err
		}
		if chain != nil {
			return r.checkLogged(certificate, chain[1])
		}
	}
	return fmt.Errorf("its certificate is not by an issuer of the trusted root: %w", wrong)
}

// chainAt is the certificate's chain, where it is valid at each of the times; nil where the issuer did not count.
func (a authority) chainAt(certificate *x509.Certificate, times []time.Time) (chain []*x509.Certificate, err error) {
	for _, at := range times {
		if !a.valid.contains(at) {
			return nil, nil
		}
		chains, err := certificate.Verify(a.options(at))
		if err != nil {
			return nil, err
		}
		chain = chains[0]
	}
	if len(chain) < 2 {
		return nil, errors.New("it is the issuer's own")
	}
	return chain, nil
}

// Extensions of Fulcio's certificates: the issuer as a string of ASN.1, and in older ones as it is.
var (
	issuerExtension = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}
	olderExtension  = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}
)

// identityOf reads a certificate, which need not have been checked.
func identityOf(c *x509.Certificate) (Identity, error) {
	var names []string
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	names = append(names, c.EmailAddresses...)
	if len(names) != 1 {
		return Identity{}, fmt.Errorf("its certificate has %d names, want one URI or e-mail address", len(names))
	}
	i := Identity{Name: names[0]}
	for _, e := range c.Extensions {
		switch {
		case e.Id.Equal(issuerExtension):
			var s string
			if rest, err := asn1.Unmarshal(e.Value, &s); err != nil || len(rest) > 0 {
				return Identity{}, errors.New("its certificate's issuer extension cannot be read")
			}
			i.Issuer = s
			return i, nil
		case e.Id.Equal(olderExtension):
			i.Issuer = string(e.Value)
		}
	}
	if i.Issuer == "" {
		return Identity{}, errors.New("its certificate does not say who checked the identity")
	}
	return i, nil
}

// envelope decodes the envelope of a bundle, which has exactly one signature.
func (b *bundle) envelope() (payload, signature []byte, err error) {
	if !strings.HasPrefix(b.MediaType, bundlePrefix) {
		return nil, nil, fmt.Errorf("it has media type %q, want %q", b.MediaType, BundleType)
	}
	if b.DSSEEnvelope == nil || len(b.DSSEEnvelope.Signatures) != 1 {
		return nil, nil, errors.New("want an envelope with exactly one signature")
	}
	payload, err = b.DSSEEnvelope.DecodeB64Payload()
	if err != nil {
		return nil, nil, fmt.Errorf("its payload is no base64: %w", err)
	}
	signature, err = base64.StdEncoding.DecodeString(b.DSSEEnvelope.Signatures[0].Sig)
	if err != nil {
		return nil, nil, fmt.Errorf("its signature is no base64: %w", err)
	}
	return payload, signature, nil
}
