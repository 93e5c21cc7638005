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
)

var (
	_ Verifier = (*PublicKey)(nil)
	_ Verifier = Keyless{}
)

// Names that cosign and Sigstore define.
const (
	// BundleType is the media type of a signature, and the artifact type of its OCI manifest.
	BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

	bundlePrefix  = "application/vnd.dev.sigstore.bundle"
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"

	// Signature is the kind of statement that says: these are my bytes. Other kinds say something about them.
	Signature = "https://sigstore.dev/cosign/sign/v1"
)

// Annotations are those of the OCI manifest of a statement of a kind, without its time.
func Annotations(kind string) map[string]string {
	return map[string]string{"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": kind}
}

// bundle is the part of a Sigstore bundle that counts here. A hint is the base64 of the key's SHA-256.
type bundle struct {
	MediaType            string         `json:"mediaType"`
	VerificationMaterial material       `json:"verificationMaterial"`
	DSSEEnvelope         *dsse.Envelope `json:"dsseEnvelope"`
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

// Sign gives a bundle with a signed statement of a kind about the manifest with this digest, sha256:<hex>. What a
// Signature says is {}.
func (k *PrivateKey) Sign(kind, digest string, says json.RawMessage) ([]byte, error) {
	of := strings.TrimPrefix(digest, "sha256:")
	payload, err := json.Marshal(statement{Type: statementType, PredicateType: kind,
		Subject: []subject{{Digest: map[string]string{"sha256": of}}}, Predicate: says})
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

// Signer is what a bundle says of itself, and is not checked: the ID of a key, or the identity in its certificate.
func Signer(text []byte) string {
	var b bundle
	if err := json.Unmarshal(text, &b); err != nil {
		return "an unknown key"
	}
	if b.VerificationMaterial.certificate() != nil {
		if i, ok := claimed(text); ok {
			return i.String()
		}
		return "a certificate for no identity"
	}
	if key := b.VerificationMaterial.PublicKey; key != nil {
		if id, err := base64.StdEncoding.DecodeString(key.Hint); err == nil && len(id) == sha256.Size {
			return "sha256:" + hex.EncodeToString(id)
		}
	}
	return "an unknown key"
}

// ErrOtherKey says that a signature is not by the key that it was checked with.
var ErrOtherKey = errors.New("it is not by this key")

// Statement is what a bundle says, and of which kind that is: not checked unless Verify has accepted the bundle. Both
// are empty where it cannot be read.
func Statement(text []byte) (kind string, says json.RawMessage) {
	var b bundle
	var s statement
	if json.Unmarshal(text, &b) != nil {
		return "", nil
	}
	payload, _, err := b.envelope()
	if err != nil || json.Unmarshal(payload, &s) != nil {
		return "", nil
	}
	return s.PredicateType, s.Predicate
}

// Verifier wants a signature of somebody: of a PublicKey, or a Keyless one of an identity.
type Verifier interface {
	// Verify checks that a bundle is their statement of a kind about the manifest with this digest, sha256:<hex>, and
	// gives their name.
	//
	// Errors: ErrOtherKey, where somebody else has made it; any other error says what is wrong with the bundle.
	Verify(bundle []byte, kind, digest string) (signer string, err error)
	// Claims reports whether a bundle says that it is theirs, which is not checked.
	Claims(bundle []byte) bool
	// String names them in errors.
	String() string
}

// String is the key's ID.
func (k *PublicKey) String() string { return k.ID }

// Claims implements Verifier.
func (k *PublicKey) Claims(text []byte) bool { return Signer(text) == k.ID }

// Verify implements Verifier. The signer is the key's ID.
func (k *PublicKey) Verify(text []byte, kind, digest string) (signer string, err error) {
	var b bundle
	if err := json.Unmarshal(text, &b); err != nil {
		return "", fmt.Errorf("it is no JSON of the form: %w", err)
	}
	payload, signature, err := b.envelope()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(dsse.PAE(b.DSSEEnvelope.PayloadType, payload))
	if !ecdsa.VerifyASN1(k.key, sum[:], signature) {
		return "", ErrOtherKey
	}
	return k.ID, checkStatement(b.DSSEEnvelope.PayloadType, payload, kind, digest)
}

// checkStatement checks what was signed. One key may sign many things: only the kind that is wanted counts.
func checkStatement(payloadIs string, payload []byte, kind, digest string) error {
	var s statement
	if payloadIs != payloadType {
		return fmt.Errorf("it signs a payload of type %q, want %q", payloadIs, payloadType)
	}
	if err := json.Unmarshal(payload, &s); err != nil {
		return fmt.Errorf("its statement is no JSON of the form: %w", err)
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
