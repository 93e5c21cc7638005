package signing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	bundlepb "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	commonpb "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	rekorpb "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	merkle "github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
)

// A keyless signature is made with a key that its owner created for this one signature and then discarded. Instead of
// the key one trusts an identity. An issuer (Sigstore's Fulcio) has seen a token of that identity, and issues a
// certificate, valid for some minutes, that the key belongs to it. Logs and clocks prove that the key was used in those
// minutes, and that all this happened in public. So a signature is valid if
//
//  1. the envelope is signed by the certificate's key;
//  2. the certificate is in a log of certificates (its SCT);
//  3. the signature is in a log of signatures (Rekor), with a proof of that;
//  4. a log or a clock proves at what time it was made;
//  5. at that time, the certificate, those of its issuer, and the log of signatures were valid.
//
// The keys of issuers, logs and clocks come from a Root. Versions 1 and 2 of Rekor are supported.

// Identity is the subject of a certificate.
type Identity struct {
	// Name is an e-mail address or a URI, for example that of a workflow:
	// https://github.com/team/mem/.github/workflows/release.yml@refs/tags/v1.
	Name string
	// Issuer is the URL of the service that verified the identity: https://token.actions.githubusercontent.com.
	Issuer string
}

func (i Identity) String() string { return i.Name + " issued by " + i.Issuer }

// Keyless accepts the keyless signatures of one identity.
type Keyless struct {
	Root *Root
	// Identity is the identity to accept; * at the end of its name, which must be a URI, matches anything.
	Identity Identity
}

// String implements Verifier.
func (k Keyless) String() string { return k.Identity.String() }

// Claims implements Verifier.
func (k Keyless) Claims(text []byte) bool {
	content, err := unchecked(text).VerificationContent()
	if err != nil || content.Certificate() == nil {
		return false
	}
	i, err := identityOf(content.Certificate())
	return err == nil && k.matches(i)
}

func (k Keyless) matches(i Identity) bool {
	if i.Issuer != k.Identity.Issuer {
		return false
	}
	if start, ok := strings.CutSuffix(k.Identity.Name, "*"); ok {
		return strings.Contains(i.Name, "://") && strings.HasPrefix(i.Name, start)
	}
	return i.Name == k.Identity.Name
}

// Verify implements Verifier. The signer is the identity with its full name.
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

// maxStamps bounds how many timestamps a signature may have. The library has the same limit for log entries.
const maxStamps = 32

// Verify checks that a bundle is a keyless statement of a kind about the manifest with this digest, and returns its
// signer. Errors say what is wrong with the bundle.
func (r *Root) Verify(text []byte, kind, digest string) (Identity, error) {
	b, err := readBundle(text)
	if err != nil {
		return Identity{}, err
	}
	if err := b.checkStatement(kind, digest); err != nil {
		return Identity{}, err
	}
	raw, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
	if err != nil {
		return Identity{}, err
	}
	return r.verifySignature(b, verify.WithArtifactDigest("sha256", raw))
}

// verifySignature makes sigstore-go verify the signature, after the checks that are stricter than the library's. The
// caller checks the identity.
//
// The library ignores log entries and timestamps that it cannot verify, if the others suffice. Here all of them must be
// valid, so they are verified one pair at a time; the last element of the shorter list is paired with the rest of the
// longer one.
func (r *Root) verifySignature(b *signedBundle, artifact verify.ArtifactPolicyOption) (Identity, error) {
	certificate := b.content.Certificate()
	if certificate == nil {
		return Identity{}, errors.New("it has no certificate")
	}
	if key, ok := certificate.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		return Identity{}, errors.New("its certificate's key is not of ECDSA on P-256")
	}
	if err := verify.VerifySignature(b.signature, b.content, r.trusted); err != nil {
		return Identity{}, fmt.Errorf("its envelope is not signed by its certificate: %w", err)
	}
	identity, err := identityOf(certificate)
	if err != nil {
		return Identity{}, err
	}
	material := b.GetVerificationMaterial()
	entries, stamps := material.GetTlogEntries(), material.GetTimestampVerificationData().GetRfc3161Timestamps()
	if len(entries) == 0 {
		return Identity{}, errors.New("it is in no transparency log")
	}
	if len(stamps) > maxStamps {
		return Identity{}, fmt.Errorf("it has more than %d timestamps", maxStamps)
	}
	var logs []*root.TransparencyLog
	for _, entry := range entries {
		log, err := r.checkEntry(entry)
		if err != nil {
			return Identity{}, err
		}
		logs = append(logs, log)
	}
	var timestamps []verify.TimestampVerificationResult
	for i := range max(len(entries), len(stamps)) {
		var stamp *commonpb.RFC3161SignedTimestamp
		if len(stamps) > 0 {
			stamp = stamps[min(i, len(stamps)-1)]
		}
		times, err := r.verifyWitnesses(b, entries[min(i, len(entries)-1)], stamp, artifact)
		if err != nil {
			return Identity{}, err
		}
		timestamps = append(timestamps, times...)
	}
	for _, log := range logs {
		for _, at := range timestamps {
			if at.Timestamp.Before(log.ValidityPeriodStart) ||
				!log.ValidityPeriodEnd.IsZero() && at.Timestamp.After(log.ValidityPeriodEnd) {
				return Identity{}, errors.New("its transparency log was not valid at the time")
			}
		}
	}
	validAlways := func(issuer root.CertificateAuthority) bool {
		return !slices.ContainsFunc(timestamps, func(at verify.TimestampVerificationResult) bool {
			_, err := issuer.Verify(certificate, at.Timestamp)
			return err != nil
		})
	}
	if !slices.ContainsFunc(r.trusted.FulcioCertificateAuthorities(), validAlways) {
		return Identity{}, errors.New("no issuer of the trusted root was valid at all of its times")
	}
	return identity, nil
}

// verifyWitnesses verifies the signature with one log entry and at most one timestamp, and returns the times that they
// prove.
func (r *Root) verifyWitnesses(
	b *signedBundle, entry *rekorpb.TransparencyLogEntry, stamp *commonpb.RFC3161SignedTimestamp,
	artifact verify.ArtifactPolicyOption,
) ([]verify.TimestampVerificationResult, error) {
	material := &bundlepb.VerificationMaterial{Content: b.GetVerificationMaterial().GetContent(),
		TlogEntries: []*rekorpb.TransparencyLogEntry{entry}}
	options := []verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithSignedCertificateTimestamps(1),
		verify.WithoutStatementPredicate()}
	promised := len(entry.GetInclusionPromise().GetSignedEntryTimestamp()) > 0
	if promised {
		options = append(options, verify.WithIntegratedTimestamps(1))
	}
	if stamp != nil {
		options = append(options, verify.WithSignedTimestamps(1))
		material.TimestampVerificationData = &bundlepb.TimestampVerificationData{
			Rfc3161Timestamps: []*commonpb.RFC3161SignedTimestamp{stamp}}
	}
	if !promised && stamp == nil {
		return nil, errors.New("neither a log nor a clock says when it was made")
	}
	verifier, err := verify.NewVerifier(r.trusted, options...)
	if err != nil {
		return nil, err
	}
	one, err := bundle.NewBundle(&bundlepb.Bundle{MediaType: b.GetMediaType(), VerificationMaterial: material,
		Content: b.GetContent()})
	if err != nil {
		return nil, err
	}
	result, err := verifier.Verify(one, verify.NewPolicy(artifact, verify.WithoutIdentitiesUnsafe()))
	if err != nil {
		return nil, &refusal{err}
	}
	return result.VerifiedTimestamps, nil
}

// refusal is an error of the library, on one line and with our description of the failed step.
type refusal struct{ cause error }

// steps describes the library's steps, in order, by the start of their errors.
var steps = []struct{ start, words string }{
	{"failed to verify log inclusion", "its log does not vouch for this signature"},
	{"failed to verify timestamps", "no clock of the trusted root has seen it"},
	{"failed to verify leaf certificate", "its certificate is not by an issuer of the trusted root, or had expired"},
	{"failed to verify signed certificate timestamp",
		"its certificate is in no log of certificates that the trusted root has"},
}

func (r *refusal) Error() string {
	text := strings.Join(strings.Fields(r.cause.Error()), " ")
	for _, step := range steps {
		if strings.HasPrefix(text, step.start) {
			return step.words + ": " + text
		}
	}
	return text
}

func (r *refusal) Unwrap() error { return r.cause }

// Kinds of log entries: version 1 of Rekor stores the envelope, version 2 a hash of what was signed.
const (
	entryVersion1 = "dsse 0.0.1"
	entryVersion2 = "hashedrekord 0.0.2"
)

// checkEntry checks a log entry in ways that the library does not, and returns the entry's log.
func (r *Root) checkEntry(e *rekorpb.TransparencyLogEntry) (*root.TransparencyLog, error) {
	log := r.trusted.RekorLogs()[hex.EncodeToString(e.GetLogId().GetKeyId())]
	if log == nil {
		return nil, errors.New("it is in a transparency log that the trusted root does not have")
	}
	proof := e.GetInclusionProof()
	if proof == nil {
		return nil, errors.New("its log entry has no proof of inclusion")
	}
	// The lines of a checkpoint are: the log's name, the size of the tree, its root hash in base64.
	lines := strings.SplitN(proof.GetCheckpoint().GetEnvelope(), "\n", 4)
	if len(lines) < 4 || lines[1] != strconv.FormatInt(proof.GetTreeSize(), 10) ||
		lines[2] != base64.StdEncoding.EncodeToString(proof.GetRootHash()) {
		return nil, errors.New("its log entry: the checkpoint is of another tree")
	}
	if !strictSignatures(lines[3]) {
		return nil, errors.New("its log entry: a signature of the checkpoint is no valid base64")
	}
	leaf := rfc6962.DefaultHasher.HashLeaf(e.GetCanonicalizedBody())
	if merkle.VerifyInclusion(rfc6962.DefaultHasher, uint64(proof.GetLogIndex()), uint64(proof.GetTreeSize()), leaf,
		proof.GetHashes(), proof.GetRootHash()) != nil {
		return nil, errors.New("its log entry: the proof does not lead to the checkpoint")
	}
	kind := e.GetKindVersion().GetKind() + " " + e.GetKindVersion().GetVersion()
	switch kind {
	case entryVersion1:
		var body struct {
			Spec struct{ Signatures []json.RawMessage }
		}
		if err := json.Unmarshal(e.GetCanonicalizedBody(), &body); err != nil {
			return nil, fmt.Errorf("its log entry is not JSON of the expected form: %w", err)
		}
		if n := len(body.Spec.Signatures); n != 1 {
			return nil, fmt.Errorf("its log entry has %d signatures, want one", n)
		}
	case entryVersion2:
		// The library would not compare a version 2 entry in a version 1 log with the signature.
		if treeID.MatchString(lines[0]) {
			return nil, errors.New("its log entry is of another version than its log")
		}
	default:
		return nil, fmt.Errorf("its log entry is of kind %q, want %s or %s", kind, entryVersion1, entryVersion2)
	}
	return log, nil
}

// strictSignatures reports whether the signature lines of a checkpoint, "— name base64", use the canonical encoding.
// The library ignores the unused bits of the last character, so that an entry could be modified there.
func strictSignatures(text string) bool {
	for _, line := range strings.Split(text, "\n") {
		signature, signed := strings.CutPrefix(line, "\u2014 ")
		if !signed {
			continue
		}
		_, encoded, _ := strings.Cut(signature, " ")
		if _, err := base64.StdEncoding.Strict().DecodeString(encoded); err != nil {
			return false
		}
	}
	return true
}

// treeID matches the end of a version 1 log's name in its checkpoints.
var treeID = regexp.MustCompile(` - [0-9]+$`)

// Extensions of Fulcio's certificates: the issuer as an ASN.1 string, and in older ones as raw text.
var (
	issuerExtension = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}
	olderExtension  = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}
)

// identityOf reads the identity in a certificate, which need not have been verified.
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
	if len(c.URIs) == 0 && strings.Contains(i.Name, "://") {
		return Identity{}, fmt.Errorf("its certificate has the e-mail address %q, which would pass for a URI", i.Name)
	}
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
