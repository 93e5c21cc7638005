package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
)

// rootPrefix begins the media type of a trusted root.
const rootPrefix = "application/vnd.dev.sigstore.trustedroot"

// Root is a Sigstore trusted root: who may issue certificates, and which logs and clocks count. Nothing else does, and
// nothing is fetched.
type Root struct {
	issuers []authority // of certificates
	clocks  []authority // of timestamps (RFC 3161)
	logs    []logKey    // transparency logs of signatures (Rekor)
	ctLogs  []logKey    // transparency logs of certificates
}

// authority is a chain of certificates and when it counted.
type authority struct {
	leaf          *x509.Certificate // the certificate that signs timestamps, nil for an issuer of certificates
	root          *x509.Certificate
	intermediates []*x509.Certificate
	valid         period
}

// logKey is the key of a log and when it counted. Its ID is as the log has it in what it signs.
type logKey struct {
	id    string
	key   crypto.PublicKey
	valid period
}

// period has a start and an end, of which a zero one is open.
type period struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

func (p period) contains(t time.Time) bool {
	return !t.Before(p.Start) && (p.End.IsZero() || !t.After(p.End))
}

// The form of the file, trusted_root.json of Sigstore's own repository.
type (
	rootFile struct {
		MediaType              string          `json:"mediaType"`
		TLogs                  []logFile       `json:"tlogs"`
		CTLogs                 []logFile       `json:"ctlogs"`
		CertificateAuthorities []authorityFile `json:"certificateAuthorities"`
		TimestampAuthorities   []authorityFile `json:"timestampAuthorities"`
	}
	logFile struct {
		PublicKey struct {
			RawBytes []byte `json:"rawBytes"`
			ValidFor period `json:"validFor"`
		} `json:"publicKey"`
		LogID struct {
			KeyID []byte `json:"keyId"`
		} `json:"logId"`
	}
	authorityFile struct {
		CertChain struct {
			Certificates []rawCertificate `json:"certificates"`
		} `json:"certChain"`
		ValidFor period `json:"validFor"`
	}
	rawCertificate struct {
		RawBytes []byte `json:"rawBytes"`
	}
)

// ReadRoot reads a trusted root. An error has the code invalid_argument.
func ReadRoot(text []byte) (*Root, error) {
	var f rootFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, notARoot(err.Error())
	}
	if !strings.HasPrefix(f.MediaType, rootPrefix) {
		return nil, notARoot(fmt.Sprintf("it has media type %q, want %s+json", f.MediaType, rootPrefix))
	}
	r := &Root{logs: readLogs(f.TLogs), ctLogs: readLogs(f.CTLogs)}
	for _, a := range f.CertificateAuthorities {
		issuer, err := readAuthority(a, 0)
		if err != nil {
			return nil, err
		}
		r.issuers = append(r.issuers, issuer)
	}
	for _, a := range f.TimestampAuthorities {
		clock, err := readAuthority(a, 1)
		if err != nil {
			return nil, err
		}
		r.clocks = append(r.clocks, clock)
	}
	if len(r.issuers) == 0 || len(r.logs) == 0 || len(r.ctLogs) == 0 {
		return nil, notARoot("want at least one of certificateAuthorities, tlogs and ctlogs, " +
			"the logs with a key of ECDSA on P-256 or of Ed25519")
	}
	return r, nil
}

// readLogs leaves out keys of other kinds: what their logs sign does not count.
func readLogs(list []logFile) []logKey {
	var logs []logKey
	for _, l := range list {
		key, err := x509.ParsePKIXPublicKey(l.PublicKey.RawBytes)
		if err != nil || len(l.LogID.KeyID) < 4 {
			continue
		}
		if k, ok := key.(*ecdsa.PublicKey); ok && k.Curve != elliptic.P256() {
			continue
		}
		logs = append(logs, logKey{string(l.LogID.KeyID), key, l.PublicKey.ValidFor})
	}
	return logs
}

// readAuthority reads a chain, of which the last certificate is the root and the first leaves are no authority.
func readAuthority(f authorityFile, leaves int) (authority, error) {
	a := authority{valid: f.ValidFor}
	var chain []*x509.Certificate
	for _, c := range f.CertChain.Certificates {
		certificate, err := x509.ParseCertificate(c.RawBytes)
		if err != nil {
			return a, notARoot(err.Error())
		}
		chain = append(chain, certificate)
	}
	if len(chain) <= leaves {
		return a, notARoot("a certChain is too short")
	}
	if leaves > 0 {
		a.leaf, chain = chain[0], chain[1:]
	}
	a.root, a.intermediates = chain[len(chain)-1], chain[:len(chain)-1]
	return a, nil
}

// options check a signer's certificate of this authority as of a time.
func (a authority) options(at time.Time) x509.VerifyOptions {
	o := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}}
	o.Roots.AddCert(a.root)
	for _, c := range a.intermediates {
		o.Intermediates.AddCert(c)
	}
	return o
}

func notARoot(why string) error {
	return abi.NewError(abi.CodeInvalidArgument, "is no trusted root that can be used: "+why).
		WithHint("want a trusted_root.json, as `cosign trusted-root create` and Sigstore's TUF repository make it")
}

// isSignedBy reports whether the key, ECDSA on P-256 or Ed25519, has signed the message.
func isSignedBy(key crypto.PublicKey, message, signature []byte) bool {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(message)
		return k.Curve == elliptic.P256() && ecdsa.VerifyASN1(k, sum[:], signature)
	case ed25519.PublicKey:
		return ed25519.Verify(k, message, signature)
	}
	return false
}
