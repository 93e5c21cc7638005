package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/memhost/memhost/abi"
)

// Types of PEM blocks. The second one comes from older versions of cosign.
const (
	privateType      = "ENCRYPTED SIGSTORE PRIVATE KEY"
	olderPrivateType = "ENCRYPTED COSIGN PRIVATE KEY"
	publicType       = "PUBLIC KEY"
)

// PublicKey verifies signatures.
type PublicKey struct {
	// ID is the SHA-256 of the key in PKIX format: sha256:<64 hexadecimal digits>.
	ID       string
	verifier *root.ExpiringKey // valid at any time
}

// PrivateKey creates signatures.
type PrivateKey struct {
	PublicKey
	key *ecdsa.PrivateKey
}

// NewKey creates a key pair. password may be empty, as with cosign: anyone with the file can then sign.
func NewKey(password []byte) (private, public []byte, id string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, "", err
	}
	sealed, err := encrypted.Encrypt(der, password)
	if err != nil {
		return nil, nil, "", err
	}
	pkix, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, nil, "", err
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateType, Bytes: sealed}),
		pem.EncodeToMemory(&pem.Block{Type: publicType, Bytes: pkix}), idOf(pkix), nil
}

// ReadPrivateKey parses the private half of a key pair. Errors have the code invalid_argument, or unauthenticated if
// the password is wrong.
func ReadPrivateKey(text, password []byte) (*PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != privateType && block.Type != olderPrivateType {
		return nil, notAKey("want a PEM block " + privateType)
	}
	der, err := encrypted.Decrypt(block.Bytes, password)
	if err != nil {
		return nil, abi.WrapError(abi.CodeUnauthenticated, "the key cannot be decrypted: is the password right?", err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, notAKey(err.Error())
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, notAKey(fmt.Sprintf("found a key of type %T", parsed))
	}
	pkix, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, notAKey(err.Error())
	}
	public, err := newPublicKey(idOf(pkix), &key.PublicKey)
	if err != nil {
		return nil, notAKey(err.Error())
	}
	return &PrivateKey{PublicKey: *public, key: key}, nil
}

// ReadPublicKey parses the public half of a key pair. Errors have the code invalid_argument.
func ReadPublicKey(text []byte) (*PublicKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != publicType {
		return nil, notAKey("want a PEM block " + publicType)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, notAKey(err.Error())
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, notAKey(fmt.Sprintf("found a key of type %T", parsed))
	}
	public, err := newPublicKey(idOf(block.Bytes), key)
	if err != nil {
		return nil, notAKey(err.Error())
	}
	return public, nil
}

func newPublicKey(id string, key *ecdsa.PublicKey) (*PublicKey, error) {
	verifier, err := signature.LoadECDSAVerifier(key, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	return &PublicKey{ID: id, verifier: root.NewExpiringKey(verifier, time.Time{}, time.Time{})}, nil
}

func notAKey(why string) error {
	return abi.NewError(abi.CodeInvalidArgument, "is no key that can be used: "+why).
		WithHint("want ECDSA on P-256, as `memhost sign new-key` and `cosign generate-key-pair` make them")
}

func idOf(pkix []byte) string {
	sum := sha256.Sum256(pkix)
	return "sha256:" + hex.EncodeToString(sum[:])
}
