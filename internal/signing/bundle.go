package signing

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	bundlepb "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"google.golang.org/protobuf/encoding/protojson"
)

var (
	_ Verifier = (*PublicKey)(nil)
	_ Verifier = Keyless{}
)

// Names defined by cosign and Sigstore.
const (
	// BundleType is the media type of a signature, and the artifact type of its OCI manifest.
	BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"

	// Signature is the kind of statement that means: these are my bytes. Other kinds of statements are about the bytes.
	Signature = "https://sigstore.dev/cosign/sign/v1"
)

// Annotations returns the annotations of the OCI manifest for a statement of a kind, without its time.
func Annotations(kind string) map[string]string {
	return map[string]string{"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": kind}
}

type statement struct {
	Type          string          `json:"_type"`
	Subject       []subject       `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

type subject struct {
	Digest map[string]string `json:"digest"`
}

// Sign returns a bundle with a signed statement of a kind about the manifest with this digest, sha256:<hex>. The
// predicate of a Signature is {}.
func (k *PrivateKey) Sign(kind, digest string, predicate json.RawMessage) ([]byte, error) {
	of := strings.TrimPrefix(digest, "sha256:")
	payload, err := json.Marshal(statement{Type: statementType, PredicateType: kind,
		Subject: []subject{{Digest: map[string]string{"sha256": of}}}, Predicate: predicate})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(dsse.PAE(payloadType, payload))
	signature, err := ecdsa.SignASN1(rand.Reader, k.key, sum[:])
	if err != nil {
		return nil, err
	}
	id, err := hex.DecodeString(strings.TrimPrefix(k.ID, "sha256:"))
	if err != nil {
		return nil, err
	}
	encode := base64.StdEncoding.EncodeToString
	return json.Marshal(map[string]any{
		"mediaType":            BundleType,
		"verificationMaterial": map[string]any{"publicKey": map[string]string{"hint": encode(id)}},
		"dsseEnvelope": map[string]any{"payload": encode(payload), "payloadType": payloadType,
			"signatures": []map[string]string{{"sig": encode(signature)}}},
	})
}

// unchecked parses as much of a bundle as possible, to show its claims. The result may be empty.
func unchecked(text []byte) *bundle.Bundle {
	b := &bundlepb.Bundle{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, b); err != nil {
		b = &bundlepb.Bundle{}
	}
	return &bundle.Bundle{Bundle: b}
}

// Signer returns what a bundle claims about its signer, unchecked: the ID of a key, or the identity in its certificate.
func Signer(text []byte) string {
	content, err := unchecked(text).VerificationContent()
	switch {
	case err != nil:
	case content.Certificate() != nil:
		if i, err := identityOf(content.Certificate()); err == nil {
			return i.String()
		}
		return "a certificate without one identity"
	case content.PublicKey() != nil:
		id, err := base64.StdEncoding.DecodeString(content.PublicKey().Hint())
		if err == nil && len(id) == sha256.Size {
			return "sha256:" + hex.EncodeToString(id)
		}
	}
	return "an unknown key"
}

// ErrOtherKey means that the signature was made by another key than the one it was checked against.
var ErrOtherKey = errors.New("it is not by this key")

// Statement returns the kind and the predicate of a bundle's statement, unchecked unless Verify has accepted the bundle.
// Both are empty if it cannot be read.
func Statement(text []byte) (kind string, predicate json.RawMessage) {
	var s statement
	if json.Unmarshal(unchecked(text).GetDsseEnvelope().GetPayload(), &s) != nil {
		return "", nil
	}
	return s.PredicateType, s.Predicate
}

// Verifier accepts the signatures of one signer: a PublicKey, or a Keyless identity.
type Verifier interface {
	// Verify checks that a bundle is the signer's statement of a kind about the manifest with this digest,
	// sha256:<hex>, and returns the signer's name.
	//
	// Errors: ErrOtherKey if another signer made it; any other error says what is wrong with the bundle.
	Verify(bundle []byte, kind, digest string) (signer string, err error)
	// Claims reports whether a bundle claims, unchecked, to be from the signer.
	Claims(bundle []byte) bool
	// String names the signer in errors.
	String() string
}

// String is the key's ID.
func (k *PublicKey) String() string { return k.ID }

// Claims implements Verifier.
func (k *PublicKey) Claims(text []byte) bool { return Signer(text) == k.ID }

// Verify implements Verifier. The signer is the key's ID.
func (k *PublicKey) Verify(text []byte, kind, digest string) (signer string, err error) {
	b, err := readBundle(text)
	if err != nil {
		return "", err
	}
	trusted := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) { return k.verifier, nil })
	if b.content.PublicKey() == nil || verify.VerifySignature(b.signature, b.content, trusted) != nil {
		return "", ErrOtherKey
	}
	return k.ID, b.checkStatement(kind, digest)
}

// signedBundle is a well-formed bundle: a DSSE envelope with exactly one signature.
type signedBundle struct {
	*bundle.Bundle
	content     verify.VerificationContent
	signature   verify.SignatureContent
	payload     []byte
	payloadType string
}

// readBundle parses a bundle strictly, without verifying the signature.
func readBundle(text []byte) (*signedBundle, error) {
	b := &signedBundle{Bundle: new(bundle.Bundle)}
	if err := b.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("it is not a Sigstore bundle: %w", &refusal{err})
	}
	envelope := b.GetDsseEnvelope()
	if len(envelope.GetSignatures()) != 1 {
		return nil, errors.New("want an envelope with exactly one signature")
	}
	b.payload, b.payloadType = envelope.GetPayload(), envelope.GetPayloadType()
	var err error
	if b.signature, err = b.SignatureContent(); err != nil {
		return nil, fmt.Errorf("its signature cannot be read: %w", err)
	}
	if b.content, err = b.VerificationContent(); err != nil {
		return nil, fmt.Errorf("it has no key or certificate that can be read: %w", err)
	}
	return b, nil
}

// checkStatement checks the content of the envelope. A key may sign many kinds of statements: only the given kind is
// accepted.
func (b *signedBundle) checkStatement(kind, digest string) error {
	var s statement
	if b.payloadType != payloadType {
		return fmt.Errorf("it signs a payload of type %q, want %q", b.payloadType, payloadType)
	}
	if err := json.Unmarshal(b.payload, &s); err != nil {
		return fmt.Errorf("its statement is not JSON of the expected form: %w", err)
	}
	if s.Type != statementType || s.PredicateType != kind {
		return fmt.Errorf("it states %q of type %q, want %q", s.PredicateType, s.Type, kind)
	}
	of, _ := strings.CutPrefix(digest, "sha256:")
	if of == "" || !slices.ContainsFunc(s.Subject, func(s subject) bool { return s.Digest["sha256"] == of }) {
		return errors.New("it signs another digest")
	}
	return nil
}
