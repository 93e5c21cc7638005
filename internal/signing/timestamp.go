package signing

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/sigstore/timestamp-authority/v2/pkg/verification"
)

// verifyTimestamp checks that a clock of the root has seen the signature, and says when (RFC 3161). The answer names
// the clock's certificate or brings it along; only those of the root count.
func (r *Root) verifyTimestamp(answer, signature []byte) (time.Time, error) {
	wrong := errors.New("the trusted root has no clock")
	for _, clock := range r.clocks {
		t, err := verification.VerifyTimestampResponse(answer, bytes.NewReader(signature), verification.VerifyOpts{
			TSACertificate: clock.leaf, Intermediates: clock.intermediates, Roots: []*x509.Certificate{clock.root}})
		switch {
		case err != nil:
			wrong = err
		case !clock.valid.contains(t.Time):
			wrong = errors.New("the clock did not count at the time")
		default:
			return t.Time, nil
		}
	}
	return time.Time{}, fmt.Errorf("it is by no clock of the trusted root: %w", wrong)
}
