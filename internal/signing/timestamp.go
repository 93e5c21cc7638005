package signing

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"time"

	"github.com/digitorus/pkcs7"
	"github.com/digitorus/timestamp"
)

var usageExtension = asn1.ObjectIdentifier{2, 5, 29, 37}

// verifyTimestamp checks that a clock of the root has seen the signature, and says when (RFC 3161).
func (r *Root) verifyTimestamp(answer, signature []byte) (time.Time, error) {
	t, err := timestamp.ParseResponse(answer)
	if err != nil {
		return time.Time{}, err
	}
	if t.HashAlgorithm < crypto.SHA256 || !t.HashAlgorithm.Available() {
		return time.Time{}, errors.New("it is of a hash that does not count")
	}
	h := t.HashAlgorithm.New()
	h.Write(signature)
	if !bytes.Equal(h.Sum(nil), t.HashedMessage) {
		return time.Time{}, errors.New("it is of another signature")
	}
	for _, clock := range r.clocks {
		if clock.valid.contains(t.Time) && clock.hasSigned(t) {
			return t.Time, nil
		}
	}
	return time.Time{}, errors.New("it is by no clock of the trusted root")
}

// hasSigned reports whether a timestamp is by this clock's certificate, which was valid then.
func (a authority) hasSigned(t *timestamp.Timestamp) bool {
	token, err := pkcs7.Parse(t.RawToken)
	if err != nil {
		return false
	}
	token.Certificates = []*x509.Certificate{a.leaf} // and none that the token brings
	critical := false
	for _, e := range a.leaf.Extensions {
		critical = critical || e.Critical && e.Id.Equal(usageExtension)
	}
	return critical && token.GetOnlySigner() != nil &&
		token.VerifyWithOpts(a.options(t.Time, x509.ExtKeyUsageTimeStamping)) == nil
}
