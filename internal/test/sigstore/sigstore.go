// Package sigstore makes keyless signatures for tests, as Sigstore's services make them: certificates with a promise of
// a log, log entries with a proof, timestamps. Its keys are made anew each time, and nothing is sent anywhere.
package sigstore

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/stretchr/testify/require"
	"github.com/transparency-dev/merkle/rfc6962"
)

// Made is when the certificates of signatures are made.
var Made = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// logName is the host of the log's URL.
const logName = "log.example"

// Services are one Sigstore: an issuer of certificates, two logs and a clock.
type Services struct {
	t            testing.TB
	root, issuer *x509.Certificate
	issuerKey    *ecdsa.PrivateKey
	log, ctLog   *ecdsa.PrivateKey
	clock        *x509.Certificate
	clockKey     *ecdsa.PrivateKey
	Start        time.Time // of the validity of everything
}

// Signature says what to sign, and how.
type Signature struct {
	// Digest is that of the manifest, sha256:<hex>.
	Digest string
	// Predicate is the kind of the statement; "" is that of cosign's signatures.
	Predicate string
	// Name and Issuer are the identity. Name is a URI.
	Name, Issuer string
	// Version2 makes an entry as version 2 of Rekor, whose time comes from the clock.
	Version2 bool
	// Seen is when log and clock saw it; if it is zero, Made. The certificate is valid from a minute before Made to
	// nine after it.
	Seen time.Time
	// Wrong is what is not as it should be.
	Wrong Wrong
}

// Wrong has functions that change parts of a signature, before signing if the part is signed. Nil functions change
// nothing.
type Wrong struct {
	Curve       elliptic.Curve             // of the signer's key, in place of P-256
	Certificate func(*x509.Certificate)    // the signer's
	Promise     func([]byte) []byte        // that of the log of certificates, which has signed it already
	Spec        func(map[string]any)       // of the log's entry
	Stamp       func(*timestamp.Timestamp) // of the clock
	Later       time.Time                  // adds another timestamp of the clock
	Log         string                     // the log's name in its checkpoint
}

// New makes services whose certificates are valid for ten years from 2026. clock changes the clock's certificate.
func New(t testing.TB, clock ...func(*x509.Certificate)) *Services {
	s := &Services{t: t, Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.log, s.ctLog = s.newKey(), s.newKey()
	rootKey := s.newKey()
	s.root = s.certificate(authority("root"), nil, rootKey, rootKey)
	issuer := authority("issuer")
	issuer.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
	s.issuerKey = s.newKey()
	s.issuer = s.certificate(issuer, s.root, s.issuerKey, rootKey)
	s.clockKey = s.newKey()
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}})
	require.NoError(t, err)
	c := &x509.Certificate{Subject: pkix.Name{CommonName: "clock"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}}}
	for _, change := range clock {
		change(c)
	}
	s.clock = s.certificate(c, s.root, s.clockKey, rootKey)
	return s
}

func authority(name string) *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
}

func (s *Services) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(s.t, err)
	return key
}

// certificate issues a certificate for the public half of key, signed by parent, or self-signed if parent is nil.
func (s *Services) certificate(c, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) *x509.Certificate {
	if c.NotBefore.IsZero() {
		c.NotBefore, c.NotAfter = s.Start, s.Start.AddDate(10, 0, 0)
	}
	if c.SerialNumber == nil {
		serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
		require.NoError(s.t, err)
		c.SerialNumber = serial
	}
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	require.NoError(s.t, err)
	made, err := x509.ParseCertificate(der)
	require.NoError(s.t, err)
	return made
}

// Root is the trusted root of the services, as JSON.
func (s *Services) Root() []byte {
	valid := map[string]string{"start": s.Start.Format(time.RFC3339)}
	chain := func(list ...*x509.Certificate) map[string]any {
		var certificates []map[string][]byte
		for _, c := range list {
			certificates = append(certificates, map[string][]byte{"rawBytes": c.Raw})
		}
		return map[string]any{"certificates": certificates}
	}
	log := func(name string, key *ecdsa.PrivateKey) []any {
		return []any{map[string]any{"baseUrl": "https://" + name, "hashAlgorithm": "SHA2_256",
			"publicKey": map[string]any{"rawBytes": s.pkix(key), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": valid},
			"logId":     map[string]any{"keyId": s.idOf(key)}}}
	}
	subject := map[string]string{"organization": "example", "commonName": "example"}
	return s.json(map[string]any{
		"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
		"tlogs":     log(logName, s.log), "ctlogs": log("ct.example", s.ctLog),
		"certificateAuthorities": []any{map[string]any{"subject": subject, "uri": "https://issuer.example",
			"certChain": chain(s.issuer, s.root), "validFor": valid}},
		"timestampAuthorities": []any{map[string]any{"subject": subject, "uri": "https://clock.example",
			"certChain": chain(s.clock, s.root), "validFor": valid}},
	})
}

// Sign makes a bundle, as JSON.
func (s *Services) Sign(sign Signature) []byte {
	if sign.Seen.IsZero() {
		sign.Seen = Made
	}
	if sign.Predicate == "" {
		sign.Predicate = "https://sigstore.dev/cosign/sign/v1"
	}
	key := s.newKey()
	if sign.Wrong.Curve != nil {
		other, err := ecdsa.GenerateKey(sign.Wrong.Curve, rand.Reader)
		require.NoError(s.t, err)
		key = other
	}
	certificate := s.leaf(sign, key)
	payload := s.json(map[string]any{"_type": "https://in-toto.io/Statement/v1", "predicateType": sign.Predicate,
		"subject":   []any{map[string]any{"digest": map[string]string{"sha256": strings.TrimPrefix(sign.Digest, "sha256:")}}},
		"predicate": map[string]any{}})
	const payloadType = "application/vnd.in-toto+json"
	signed := dsse.PAE(payloadType, payload)
	signature := s.sign(key, signed)
	envelope := map[string]any{"payload": payload, "payloadType": payloadType,
		"signatures": []any{map[string]any{"sig": signature}}}
	material := map[string]any{"certificate": map[string][]byte{"rawBytes": certificate.Raw}}
	var stamps []map[string][]byte
	stamp := func(at time.Time, change func(*timestamp.Timestamp)) {
		stamps = append(stamps, map[string][]byte{"signedTimestamp": s.timestamp(signature, at, change)})
	}
	if sign.Version2 {
		sum := sha256.Sum256(signed)
		record := map[string]any{
			"data": map[string]any{"algorithm": "SHA2_256", "digest": sum[:]},
			"signature": map[string]any{"content": signature, "verifier": map[string]any{
				"keyDetails":      "PKIX_ECDSA_P256_SHA_256",
				"x509Certificate": map[string]any{"rawBytes": certificate.Raw}}}}
		sign.change(record)
		body := s.json(map[string]any{"apiVersion": "0.0.2", "kind": "hashedrekord",
			"spec": map[string]any{"hashedRekordV002": record}})
		entry := s.entry("hashedrekord", "0.0.2", body, cmp.Or(sign.Wrong.Log, logName))
		entry["logIndex"] = fmt.Sprint(treeIndex)
		material["tlogEntries"] = []any{entry}
		stamp(sign.Seen, sign.Wrong.Stamp)
	} else {
		whole, of := sha256.Sum256(s.json(envelope)), sha256.Sum256(payload)
		spec := map[string]any{
			"envelopeHash": map[string]any{"algorithm": "sha256", "value": hex.EncodeToString(whole[:])},
			"payloadHash":  map[string]any{"algorithm": "sha256", "value": hex.EncodeToString(of[:])},
			"signatures": []any{map[string]any{"signature": signature,
				"verifier": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})}}}
		sign.change(spec)
		body := s.json(map[string]any{"apiVersion": "0.0.1", "kind": "dsse", "spec": spec})
		entry := s.entry("dsse", "0.0.1", body, cmp.Or(sign.Wrong.Log, logName+" - 4711"))
		entry["integratedTime"] = fmt.Sprint(sign.Seen.Unix())
		promised := s.json(map[string]any{"body": body, "integratedTime": sign.Seen.Unix(),
			"logID": hex.EncodeToString(s.idOf(s.log)), "logIndex": globalIndex})
		entry["inclusionPromise"] = map[string]any{"signedEntryTimestamp": s.sign(s.log, promised)}
		material["tlogEntries"] = []any{entry}
	}
	if !sign.Wrong.Later.IsZero() {
		stamp(sign.Wrong.Later, nil)
	}
	if stamps != nil {
		material["timestampVerificationData"] = map[string]any{"rfc3161Timestamps": stamps}
	}
	return s.json(map[string]any{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
		"verificationMaterial": material, "dsseEnvelope": envelope})
}

func (sign Signature) change(spec map[string]any) {
	if sign.Wrong.Spec != nil {
		sign.Wrong.Spec(spec)
	}
}

// leaf is the signer's certificate, valid for ten minutes, with the promise of the log of certificates.
func (s *Services) leaf(sign Signature, key *ecdsa.PrivateKey) *x509.Certificate {
	name, err := url.Parse(sign.Name)
	require.NoError(s.t, err)
	issuer, err := asn1.MarshalWithParams(sign.Issuer, "utf8")
	require.NoError(s.t, err)
	c := &x509.Certificate{NotBefore: Made.Add(-time.Minute), NotAfter: Made.Add(9 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		URIs: []*url.URL{name}, ExtraExtensions: []pkix.Extension{
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(sign.Issuer)},
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}, Value: issuer}}}
	if sign.Wrong.Certificate != nil {
		sign.Wrong.Certificate(c)
	}
	before := s.certificate(c, s.issuer, key, s.issuerKey)

	at := binary.BigEndian.AppendUint64(nil, uint64(Made.UnixMilli()))
	of := sha256.Sum256(s.issuer.RawSubjectPublicKeyInfo)
	tbs := before.RawTBSCertificate
	signed := bytes.Join([][]byte{{0, 0}, at, {0, 1}, of[:], binary.BigEndian.AppendUint32(nil, uint32(len(tbs)))[1:],
		tbs, {0, 0}}, nil)
	promise := bytes.Join([][]byte{{0}, s.idOf(s.ctLog), at, {0, 0, 4, 3}, vector(s.sign(s.ctLog, signed))}, nil)
	if sign.Wrong.Promise != nil {
		promise = sign.Wrong.Promise(promise)
	}
	if promise == nil {
		return before
	}
	list, err := asn1.Marshal(vector(vector(promise)))
	require.NoError(s.t, err)
	c.ExtraExtensions = append(c.ExtraExtensions,
		pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: list})
	return s.certificate(c, s.issuer, key, s.issuerKey)
}

// vector is b behind its length in two bytes.
func vector(b []byte) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...) }

// globalIndex is the entry's index in all trees of the log, treeIndex that in its own. In version 2 both are the same.
const (
	globalIndex = 1003
	treeIndex   = 3
)

// entry puts a body into a tree of seven, and signs the tree.
func (s *Services) entry(kind, version string, body []byte, origin string) map[string]any {
	var leaves [][]byte
	for i := range 7 {
		leaves = append(leaves, rfc6962.DefaultHasher.HashLeaf([]byte{byte(i)}))
	}
	leaves[treeIndex] = rfc6962.DefaultHasher.HashLeaf(body)
	root := treeHash(leaves)
	text := fmt.Sprintf("%s\n%d\n%s\n", origin, len(leaves), base64.StdEncoding.EncodeToString(root))
	sum := s.idOf(s.log)
	line := base64.StdEncoding.EncodeToString(append(sum[:4:4], s.sign(s.log, []byte(text))...))
	return map[string]any{
		"logIndex": fmt.Sprint(globalIndex), "logId": map[string]any{"keyId": sum},
		"kindVersion": map[string]string{"kind": kind, "version": version},
		"inclusionProof": map[string]any{"logIndex": fmt.Sprint(treeIndex), "rootHash": root,
			"treeSize": fmt.Sprint(len(leaves)), "hashes": path(treeIndex, leaves),
			"checkpoint": map[string]string{"envelope": text + "\n— " + logName + " " + line + "\n"}},
		"canonicalizedBody": body,
	}
}

// treeHash and path are those of RFC 6962, section 2.1.
func treeHash(leaves [][]byte) []byte {
	if len(leaves) == 1 {
		return leaves[0]
	}
	k := split(len(leaves))
	return rfc6962.DefaultHasher.HashChildren(treeHash(leaves[:k]), treeHash(leaves[k:]))
}

func path(index int, leaves [][]byte) [][]byte {
	if len(leaves) == 1 {
		return nil
	}
	k := split(len(leaves))
	if index < k {
		return append(path(index, leaves[:k]), treeHash(leaves[k:]))
	}
	return append(path(index-k, leaves[k:]), treeHash(leaves[:k]))
}

// split is the largest power of two below n.
func split(n int) int {
	k := 1
	for k*2 < n {
		k *= 2
	}
	return k
}

func (s *Services) timestamp(signature []byte, at time.Time, change func(*timestamp.Timestamp)) []byte {
	sum := sha256.Sum256(signature)
	t := timestamp.Timestamp{HashAlgorithm: crypto.SHA256, HashedMessage: sum[:], Time: at,
		Policy: asn1.ObjectIdentifier{1, 2, 3, 4}, SerialNumber: big.NewInt(1)}
	if change != nil {
		change(&t)
	}
	answer, err := t.CreateResponseWithOpts(s.clock, s.clockKey, crypto.SHA256)
	require.NoError(s.t, err)
	return answer
}

func (s *Services) sign(key *ecdsa.PrivateKey, message []byte) []byte {
	sum := sha256.Sum256(message)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	require.NoError(s.t, err)
	return signature
}

func (s *Services) pkix(key *ecdsa.PrivateKey) []byte {
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(s.t, err)
	return der
}

func (s *Services) idOf(key *ecdsa.PrivateKey) []byte {
	sum := sha256.Sum256(s.pkix(key))
	return sum[:]
}

func (s *Services) json(v any) []byte {
	text, err := json.Marshal(v)
	require.NoError(s.t, err)
	return text
}
