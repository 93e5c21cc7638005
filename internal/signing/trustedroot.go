package signing

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/x509"
	"errors"

	trustrootpb "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"
	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/memhost/memhost/abi"
)

// Root is a Sigstore trusted root: the trusted issuers of certificates, logs and clocks (timestamp authorities).
// Nothing is fetched.
type Root struct {
	trusted *root.TrustedRoot
}

// ReadRoot parses a trusted root. Errors have the code invalid_argument.
func ReadRoot(text []byte) (*Root, error) {
	r, err := readRoot(text)
	if err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, "is not a trusted root that can be used: "+err.Error(), err).
			WithHint("want a trusted_root.json, as `cosign trusted-root create` and Sigstore's TUF repository make it")
	}
	return r, nil
}

func readRoot(text []byte) (*Root, error) {
	file, err := root.NewTrustedRootProtobuf(text)
	if err != nil {
		return nil, err
	}
	file.Tlogs, file.Ctlogs = usableLogs(file.Tlogs), usableLogs(file.Ctlogs)
	if len(file.CertificateAuthorities) == 0 || len(file.Tlogs) == 0 || len(file.Ctlogs) == 0 {
		return nil, errors.New("want at least one of certificateAuthorities, tlogs and ctlogs, " +
			"the logs with a key of ECDSA on P-256 or of Ed25519")
	}
	var clocks []*trustrootpb.CertificateAuthority
	for _, clock := range file.TimestampAuthorities {
		chain := clock.GetCertChain().GetCertificates()
		if len(chain) < 2 {
			return nil, errors.New("the certChain of a timestamp authority is too short")
		}
		leaf, err := x509.ParseCertificate(chain[0].GetRawBytes())
		if err != nil {
			return nil, err
		}
		if !leaf.IsCA { // otherwise the library would accept any clock that the authority ever certified
			clocks = append(clocks, clock)
		}
	}
	file.TimestampAuthorities = clocks
	trusted, err := root.NewTrustedRootFromProtobuf(file)
	if err != nil {
		return nil, err
	}
	return &Root{trusted}, nil
}

// usableLogs drops logs whose keys are of kinds that Sigstore does not use: their signatures cannot be verified.
func usableLogs(logs []*trustrootpb.TransparencyLogInstance) []*trustrootpb.TransparencyLogInstance {
	var usable []*trustrootpb.TransparencyLogInstance
	for _, log := range logs {
		key, _ := x509.ParsePKIXPublicKey(log.GetPublicKey().GetRawBytes())
		switch k := key.(type) {
		case *ecdsa.PublicKey:
			if k.Curve == elliptic.P256() {
				usable = append(usable, log)
			}
		case ed25519.PublicKey:
			usable = append(usable, log)
		}
	}
	return usable
}
