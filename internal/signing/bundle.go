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

// Names that cosign and Sigstore define.
const (
	// BundleType is the media type of a signature, and the artifact type of its OCI manifest.
	BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

	bundlePrefix  = "application/vnd.dev.sigstore.bundle"
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"
	// signPredicate says that the statement is a signature and no attestation about something else.
	signPredicate = "https://sigstore.dev/cosign/sign/v1"
)

// Annotations are those of the OCI manifest of a signature, without its time.
func Annotations() map[string]string {
	return map[string]string{"dev.sigstore.bundle.content": "dsse-envelope",
		"dev.sigstore.bundle.predicateType": signPredicate}
}

// bundle is the part of a Sigstore bundle that counts here. A hint is the base64 of the key's SHA-256.
type bundle struct {
	MediaType            string `json:"mediaType"`
	VerificationMaterial struct {
		PublicKey *struct {
			Hint string `json:"hint"`
		} `json:"publicKey,omitempty"`
		Certificate json.RawMessage `json:"certificate,omitempty"`
	} `json:"verificationMaterial"`
	DSSEEnvelope *dsse.Envelope `json:"dsseEnvelope"`
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

// Sign gives a bundle that says: the owner of this key signs the manifest with this digest, sha256:<hex>.
func (k *PrivateKey) Sign(digest string) ([]byte, error) {
	of := strings.TrimPrefix(digest, "sha256:")
	payload, err := json.Marshal(statement{Type: statementType, PredicateType: signPredicate,
		Subject: []subject{{Digest: map[string]string{"sha256": of}}}, Predicate: json.RawMessage("{}")})
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

// Signer is what a bundle says of itself, and is not checked: the ID of a key, or "a certificate".
func Signer(text []byte) string {
	var b bundle
	if err := json.Unmarshal(text, &b); err != nil {
		return "an unknown key"
	}
	if len(b.VerificationMaterial.Certificate) > 0 {
		return "a certificate"
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

// Verify checks that a bundle is the key's signature of the manifest with this digest.
//
// Errors: ErrOtherKey, where the signature does not match the key; any other error says what is wrong with the bundle.
func (k *PublicKey) Verify(text []byte, digest string) error {
	var b bundle
	if err := json.Unmarshal(text, &b); err != nil {
		return fmt.Errorf("it is no JSON of the form: %w", err)
	}
	if !strings.HasPrefix(b.MediaType, bundlePrefix) {
		return fmt.Errorf("it has media type %q, want %q", b.MediaType, BundleType)
	}
	if b.DSSEEnvelope == nil || len(b.DSSEEnvelope.Signatures) != 1 {
		return errors.New("want an envelope with exactly one signature")
	}
	payload, err := b.DSSEEnvelope.DecodeB64Payload()
	if err != nil {
		return fmt.Errorf("its payload is no base64: %w", err)
	}
	signature, err := base64.StdEncoding.DecodeString(b.DSSEEnvelope.Signatures[0].Sig)
	if err != nil {
		return fmt.Errorf("its signature is no base64: %w", err)
	}
	sum := sha256.Sum256(dsse.PAE(b.DSSEEnvelope.PayloadType, payload))
	if !ecdsa.VerifyASN1(k.key, sum[:], signature) {
		return ErrOtherKey
	}
	return checkStatement(b.DSSEEnvelope.PayloadType, payload, digest)
}

// checkStatement checks what was signed. One key may sign many things: only this kind is a module's signature.
func checkStatement(kind string, payload []byte, digest string) error {
	var s statement
	if kind != payloadType {
		return fmt.Errorf("it signs a payload of type %q, want %q", kind, payloadType)
	}
	if err := json.Unmarshal(payload, &s); err != nil {
		return fmt.Errorf("its statement is no JSON of the form: %w", err)
	}
	if s.Type != statementType || s.PredicateType != signPredicate {
		return fmt.Errorf("it states %q of type %q, want %q", s.PredicateType, s.Type, signPredicate)
	}
	of, _ := strings.CutPrefix(digest, "sha256:")
	if of == "" || !slices.ContainsFunc(s.Subject, func(s subject) bool { return s.Digest["sha256"] == of }) {
		return errors.New("it signs another digest")
	}
	return nil
}
