package signing

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

var digest = "sha256:" + strings.Repeat("0a", 32)

func newPair(t *testing.T) (*PrivateKey, *PublicKey) {
	private, public, id, err := NewKey([]byte("secret"))
	require.NoError(t, err)
	key, err := ReadPrivateKey(private, []byte("secret"))
	require.NoError(t, err)
	half, err := ReadPublicKey(public)
	require.NoError(t, err)
	assert.Equal(t, id, key.ID)
	assert.Equal(t, id, half.ID)
	return key, half
}

func TestASignatureIsForOneDigestAndOneKey(t *testing.T) {
	key, half := newPair(t)
	_, other := newPair(t)
	text, err := key.Sign(Signature, digest, json.RawMessage("{}"))
	require.NoError(t, err)
	assert.Equal(t, key.ID, Signer(text))
	signer, err := half.Verify(text, Signature, digest)
	require.NoError(t, err)
	assert.Equal(t, key.ID, signer)
	_, err = other.Verify(text, Signature, digest)
	require.ErrorIs(t, err, ErrOtherKey)
	_, err = half.Verify(text, Signature, "sha256:"+strings.Repeat("0b", 32))
	require.ErrorContains(t, err, "another digest")
}

func TestAChangedSignatureIsRefused(t *testing.T) {
	key, half := newPair(t)
	text, err := key.Sign(Signature, digest, json.RawMessage("{}"))
	require.NoError(t, err)
	payload := func(s string) string { return `"payload":"` + base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, change := range [][2]string{
		{string(text), "not JSON"},
		{`sigstore.bundle`, `other.bundle`},
		{`"payload":"`, payload(`{}`) + `","x":"`},
		{`application/vnd.in-toto+json`, `text/plain`},
		{`"signatures":[`, `"signatures":[{"sig":""},`},
		{`"sig":"`, `"sig":"!`},
		{`"sig":"`, `"sig":"AAAA`},
	} {
		changed := strings.Replace(string(text), change[0], change[1], 1)
		require.NotEqual(t, string(text), changed, change[0])
		_, err := half.Verify([]byte(changed), Signature, digest)
		require.Error(t, err, change[1])
	}
}

// TestOnlyASignatureIsASignature: the key's owner may sign other statements about the same digest, such as a list of
// parts.
func TestOnlyASignatureIsASignature(t *testing.T) {
	of := strings.TrimPrefix(digest, "sha256:")
	signed := func(kind, predicate string) []byte {
		s, err := json.Marshal(statement{Type: kind, PredicateType: predicate,
			Subject: []subject{{Digest: map[string]string{"sha256": of}}}})
		require.NoError(t, err)
		return s
	}
	checkStatement := func(payloadType string, payload []byte, kind, digest string) error {
		return (&signedBundle{payload: payload, payloadType: payloadType}).checkStatement(kind, digest)
	}
	require.NoError(t, checkStatement(payloadType, signed(statementType, Signature), Signature, digest))
	require.Error(t, checkStatement(payloadType, signed(statementType, "https://spdx.dev/Document"), Signature, digest))
	require.Error(t, checkStatement(payloadType, signed("other", Signature), Signature, digest))
	require.Error(t, checkStatement("text/plain", signed(statementType, Signature), Signature, digest))
	require.Error(t, checkStatement(payloadType, []byte("{"), Signature, digest))
	none := bytes.ReplaceAll(signed(statementType, Signature), []byte("sha256"), []byte("sha512"))
	require.Error(t, checkStatement(payloadType, none, Signature, digest))
	require.Error(t, checkStatement(payloadType, none, Signature, "sha256:"), "an absent digest is no match")
}

func TestKeysAreCosigns(t *testing.T) {
	private, public, _, err := NewKey([]byte("secret"))
	require.NoError(t, err)
	_, err = ReadPrivateKey(private, []byte("other"))
	assert.Equal(t, abi.CodeUnauthenticated, abi.AsError(err).Code)
	older := strings.ReplaceAll(string(private), privateType, olderPrivateType)
	_, err = ReadPrivateKey([]byte(older), []byte("secret"))
	require.NoError(t, err)
	for _, text := range [][]byte{nil, []byte("no key"), public, bytes.ReplaceAll(private, []byte("a"), nil)} {
		_, err = ReadPrivateKey(text, []byte("secret"))
		require.Error(t, err, "%s", text)
	}
	rsa := "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAL8eJ5AKoIsjURpcEoGubZMxLD7+kT+T\n" +
		"Lr7UkvEtFrRhDDKMtuIIq19FrL4pUIMymPMSLBn3hJLe30Dw48GQM4UCAwEAAQ==\n-----END PUBLIC KEY-----\n"
	for _, text := range []string{"", "no key", string(private), rsa, onCurve(t, elliptic.P384())} {
		_, err = ReadPublicKey([]byte(text))
		require.Error(t, err, text)
		assert.Equal(t, abi.CodeInvalidArgument, abi.AsError(err).Code)
	}
	_, err = ReadPublicKey([]byte(onCurve(t, elliptic.P256())))
	require.NoError(t, err)
}

// onCurve returns the public half of a new key on a curve.
func onCurve(t *testing.T, curve elliptic.Curve) string {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	pkix, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: publicType, Bytes: pkix}))
}

func TestASignerIsWhatTheBundleSays(t *testing.T) {
	assert.Equal(t, "an unknown key", Signer([]byte("no JSON")))
	assert.Equal(t, "an unknown key", Signer([]byte(`{}`)))
	assert.Equal(t, "an unknown key", Signer([]byte(`{"verificationMaterial":{"publicKey":{"hint":"x"}}}`)))
}
