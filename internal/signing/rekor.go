package signing

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
)

// signatureOf is what a log entry is about: the bytes that were signed, the payload in them, the signature, and the
// signer's certificate.
type signatureOf struct {
	signed, payload, signature []byte
	certificate                *x509.Certificate
}

// logEntry is one of tlogEntries of a bundle.
type logEntry struct {
	LogIndex int64 `json:"logIndex,string"`
	LogID    struct {
		KeyID []byte `json:"keyId"`
	} `json:"logId"`
	KindVersion struct {
		Kind    string `json:"kind"`
		Version string `json:"version"`
	} `json:"kindVersion"`
	// IntegratedTime is in seconds since 1970. Version 2 of Rekor has none.
	IntegratedTime int64 `json:"integratedTime,string"`
	// Promise is the log's signature of its time, its index and the body.
	Promise *struct {
		SignedEntryTimestamp []byte `json:"signedEntryTimestamp"`
	} `json:"inclusionPromise"`
	Proof *struct {
		LogIndex   int64    `json:"logIndex,string"`
		RootHash   []byte   `json:"rootHash"`
		TreeSize   int64    `json:"treeSize,string"`
		Hashes     [][]byte `json:"hashes"`
		Checkpoint struct {
			Envelope string `json:"envelope"`
		} `json:"checkpoint"`
	} `json:"inclusionProof"`
	CanonicalizedBody []byte `json:"canonicalizedBody"`
}

// verifyEntry checks that a log of the root has the signature, and gives that log. The time is when the log says that
// it got it, zero where it does not say so.
func (r *Root) verifyEntry(e *logEntry, s signatureOf) (log logKey, at time.Time, err error) {
	i := slices.IndexFunc(r.logs, func(l logKey) bool { return l.id == string(e.LogID.KeyID) })
	if i < 0 {
		return log, at, errors.New("it is in a transparency log that the trusted root does not have")
	}
	log = r.logs[i]
	if err := e.checkIncluded(log); err != nil {
		return log, at, fmt.Errorf("its log entry: %w", err)
	}
	if err := e.checkBody(s); err != nil {
		return log, at, fmt.Errorf("its log entry: %w", err)
	}
	if e.Promise == nil || len(e.Promise.SignedEntryTimestamp) == 0 {
		return log, at, nil
	}
	if !e.isPromised(log.key) {
		return log, at, errors.New("its log entry: the log has not signed its time")
	}
	return log, time.Unix(e.IntegratedTime, 0), nil
}

// checkIncluded checks that the entry's body is in the tree that the log signed.
func (e *logEntry) checkIncluded(log logKey) error {
	p := e.Proof
	if p == nil {
		return errors.New("it has no proof of inclusion")
	}
	checkpoint, err := note.Open([]byte(p.Checkpoint.Envelope), checkpointKey(log))
	if err != nil {
		return fmt.Errorf("its checkpoint is not the log's: %w", err)
	}
	// The lines of a checkpoint are: the log's name, the size of the tree, its root hash in base64.
	lines := strings.SplitN(checkpoint.Text, "\n", 4)
	if len(lines) < 4 || lines[1] != strconv.FormatInt(p.TreeSize, 10) ||
		lines[2] != base64.StdEncoding.EncodeToString(p.RootHash) {
		return errors.New("its checkpoint is of another tree")
	}
	if p.LogIndex < 0 || p.TreeSize < 0 {
		return errors.New("it has a negative place in the log")
	}
	leaf := rfc6962.DefaultHasher.HashLeaf(e.CanonicalizedBody)
	err = proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(p.LogIndex), uint64(p.TreeSize), leaf, p.Hashes, p.RootHash)
	if err != nil {
		return errors.New("its proof does not lead from the entry to the checkpoint")
	}
	return nil
}

// checkpointKey finds and checks the log's signature of a checkpoint, by the first four bytes of the log's ID.
type checkpointKey logKey

func (k checkpointKey) Verifier(name string, hash uint32) (note.Verifier, error) {
	if hash != binary.BigEndian.Uint32([]byte(k.id)) {
		return nil, &note.UnknownVerifierError{Name: name, KeyHash: hash}
	}
	return checkpointVerifier{name, hash, k.key}, nil
}

type checkpointVerifier struct {
	name string
	hash uint32
	key  crypto.PublicKey
}

func (v checkpointVerifier) Name() string                 { return v.name }
func (v checkpointVerifier) KeyHash() uint32              { return v.hash }
func (v checkpointVerifier) Verify(text, sig []byte) bool { return isSignedBy(v.key, text, sig) }

// isPromised reports whether the log has signed index and time of the entry.
func (e *logEntry) isPromised(key crypto.PublicKey) bool {
	signed, err := json.Marshal(struct { // the order is that of canonical JSON
		Body           []byte `json:"body"`
		IntegratedTime int64  `json:"integratedTime"`
		LogID          string `json:"logID"`
		LogIndex       int64  `json:"logIndex"`
	}{e.CanonicalizedBody, e.IntegratedTime, hex.EncodeToString(e.LogID.KeyID), e.LogIndex})
	return err == nil && isSignedBy(key, signed, e.Promise.SignedEntryTimestamp)
}

// entryBody is what the log has. Version 1 of Rekor has an entry dsse, version 2 a hashedrekord of what was signed.
type entryBody struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Spec       struct {
		PayloadHash struct {
			Algorithm string `json:"algorithm"`
			Value     string `json:"value"`
		} `json:"payloadHash"`
		Signatures []struct {
			Signature []byte `json:"signature"`
			// Verifier is a certificate in PEM.
			Verifier []byte `json:"verifier"`
		} `json:"signatures"`
		HashedRekord struct {
			Data struct {
				Algorithm string `json:"algorithm"`
				Digest    []byte `json:"digest"`
			} `json:"data"`
			Signature struct {
				Content  []byte `json:"content"`
				Verifier struct {
					Certificate rawCertificate `json:"x509Certificate"`
				} `json:"verifier"`
			} `json:"signature"`
		} `json:"hashedRekordV002"`
	} `json:"spec"`
}

// checkBody checks that the log's entry is about this signature and no other.
func (e *logEntry) checkBody(s signatureOf) error {
	var b entryBody
	if err := json.Unmarshal(e.CanonicalizedBody, &b); err != nil {
		return fmt.Errorf("it is no JSON of the form: %w", err)
	}
	if b.Kind != e.KindVersion.Kind || b.APIVersion != e.KindVersion.Version {
		return errors.New("it is of another kind than it says")
	}
	var same bool
	switch b.Kind + " " + b.APIVersion {
	case "dsse 0.0.1":
		sum := sha256.Sum256(s.payload)
		list := b.Spec.Signatures
		if len(list) != 1 {
			return fmt.Errorf("it has %d signatures, want one", len(list))
		}
		certificate, _ := pem.Decode(list[0].Verifier)
		same = certificate != nil && bytes.Equal(certificate.Bytes, s.certificate.Raw) &&
			bytes.Equal(list[0].Signature, s.signature) &&
			b.Spec.PayloadHash.Algorithm == "sha256" && b.Spec.PayloadHash.Value == hex.EncodeToString(sum[:])
	case "hashedrekord 0.0.2":
		sum := sha256.Sum256(s.signed)
		h := b.Spec.HashedRekord
		same = bytes.Equal(h.Signature.Verifier.Certificate.RawBytes, s.certificate.Raw) &&
			bytes.Equal(h.Signature.Content, s.signature) &&
			h.Data.Algorithm == "SHA2_256" && bytes.Equal(h.Data.Digest, sum[:])
	default:
		return fmt.Errorf("it is of kind %q, version %q; want dsse 0.0.1 or hashedrekord 0.0.2", b.Kind, b.APIVersion)
	}
	if !same {
		return errors.New("it is about another signature")
	}
	return nil
}
