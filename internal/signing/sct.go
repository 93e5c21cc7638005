package signing

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// sctExtension holds what logs of certificates said of a certificate before it was issued (RFC 6962, section 3.3):
// a list of signed certificate timestamps, in an octet string.
var sctExtension = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}

// sct is a signed certificate timestamp:
//
//	version 1 byte (0) | log ID 32 | milliseconds since 1970 8 | length 2 | extensions
//	hash 1 (4 = SHA-256) | signature algorithm 1 (3 = ECDSA) | length 2 | signature
type sct struct {
	logID      string
	at         uint64
	extensions []byte
	signature  []byte
}

// checkLogged checks that a log of the root has promised to list the certificate.
func (r *Root) checkLogged(certificate, issuer *x509.Certificate) error {
	list, err := sctsOf(certificate)
	if err != nil {
		return err
	}
	bare, err := withoutSCTs(certificate)
	if err != nil {
		return err
	}
	key := sha256.Sum256(issuer.RawSubjectPublicKeyInfo)
	for _, s := range list {
		at := slices.IndexFunc(r.ctLogs, func(l logKey) bool { return l.id == s.logID })
		if at < 0 || !r.ctLogs[at].valid.contains(time.UnixMilli(int64(s.at))) {
			continue
		}
		if isSignedBy(r.ctLogs[at].key, s.signed(key[:], bare), s.signature) {
			return nil
		}
	}
	return errors.New("its certificate is in no log of certificates that the trusted root has")
}

// signed is what the log has signed:
//
//	version 1 byte (0) | type 1 (0) | milliseconds 8 | entry type 2 (1 = before the certificate was issued)
//	hash of the issuer's key 32 | length 3 | certificate without signature and SCTs | length 2 | extensions
func (s sct) signed(issuer, bare []byte) []byte {
	var b bytes.Buffer
	b.Write([]byte{0, 0})
	b.Write(binary.BigEndian.AppendUint64(nil, s.at))
	b.Write([]byte{0, 1})
	b.Write(issuer)
	b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(bare)))[1:])
	b.Write(bare)
	b.Write(binary.BigEndian.AppendUint16(nil, uint16(len(s.extensions))))
	b.Write(s.extensions)
	return b.Bytes()
}

var errSCT = errors.New("the log entries in its certificate cannot be read")

func sctsOf(c *x509.Certificate) ([]sct, error) {
	for _, e := range c.Extensions {
		if !e.Id.Equal(sctExtension) {
			continue
		}
		var list []byte
		if rest, err := asn1.Unmarshal(e.Value, &list); err != nil || len(rest) > 0 {
			return nil, errSCT
		}
		list, rest, ok := cutVector(list)
		if !ok || len(rest) > 0 {
			return nil, errSCT
		}
		var all []sct
		for len(list) > 0 {
			var one []byte
			if one, list, ok = cutVector(list); !ok {
				return nil, errSCT
			}
			s, err := readSCT(one)
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
		return all, nil
	}
	return nil, errors.New("its certificate is in no log of certificates")
}

func readSCT(b []byte) (s sct, err error) {
	if len(b) < 1+sha256.Size+8 || b[0] != 0 {
		return s, errSCT
	}
	s.logID = string(b[1 : 1+sha256.Size])
	b = b[1+sha256.Size:]
	s.at = binary.BigEndian.Uint64(b)
	s.extensions, b, _ = cutVector(b[8:])
	if len(b) < 2 {
		return s, errSCT
	}
	signature, rest, ok := cutVector(b[2:])
	if !ok || len(rest) > 0 {
		return s, errSCT
	}
	s.signature = signature
	return s, nil
}

// cutVector splits bytes after a vector, whose length is in the first two.
func cutVector(b []byte) (vector, rest []byte, ok bool) {
	if len(b) < 2 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	if len(b) < 2+n {
		return nil, nil, false
	}
	return b[2 : 2+n], b[2+n:], true
}

// withoutSCTs is the part of the certificate that its issuer signs, in DER, without the extension of the SCTs: what the
// log got before the certificate was issued.
func withoutSCTs(c *x509.Certificate) ([]byte, error) {
	var parts []asn1.RawValue
	if _, err := asn1.Unmarshal(c.RawTBSCertificate, &parts); err != nil {
		return nil, errSCT
	}
	last := &parts[len(parts)-1] // the extensions: [3] EXPLICIT SEQUENCE OF Extension
	var extensions []asn1.RawValue
	if _, err := asn1.Unmarshal(last.Bytes, &extensions); err != nil {
		return nil, errSCT
	}
	extensions = slices.DeleteFunc(extensions, func(e asn1.RawValue) bool {
		var id asn1.ObjectIdentifier
		_, err := asn1.Unmarshal(e.Bytes, &id)
		return err == nil && id.Equal(sctExtension)
	})
	left, err := asn1.Marshal(extensions)
	if err != nil {
		return nil, errSCT
	}
	*last = asn1.RawValue{Class: last.Class, Tag: last.Tag, IsCompound: true, Bytes: left}
	return asn1.Marshal(parts)
}
