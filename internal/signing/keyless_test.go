package signing

import (
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/sigstore"
)

const (
	workflow = "https://github.com/team/mem/.github/workflows/release.yml@refs/tags/v1"
	actions  = "https://token.actions.githubusercontent.com"
)

func rootOf(t testing.TB, s *sigstore.Services) *Root {
	r, err := ReadRoot(s.Root())
	require.NoError(t, err)
	return r
}

func TestAKeylessSignatureIsForOneDigestAndOneIdentity(t *testing.T) {
	s := sigstore.New(t)
	root, other := rootOf(t, s), rootOf(t, sigstore.New(t))
	for _, version2 := range []bool{false, true} {
		text := s.Sign(sigstore.Signature{Digest: digest, Name: workflow, Issuer: actions, Version2: version2})
		assert.Equal(t, workflow+" issued by "+actions, Signer(text))
		identity, err := root.Verify(text, Signature, digest)
		require.NoError(t, err)
		assert.Equal(t, Identity{workflow, actions}, identity)
		_, err = root.Verify(text, Signature, "sha256:"+strings.Repeat("0b", 32))
		require.ErrorContains(t, err, "another digest")
		_, err = other.Verify(text, Signature, digest)
		require.ErrorContains(t, err, "that the trusted root does not have")

		for name, want := range map[Identity]error{
			{workflow, actions}: nil,
			{"https://github.com/team/mem/.github/workflows/release.yml@refs/tags/*", actions}: nil,
			{workflow, "https://issuer.example"}:                                               ErrOtherKey,
			{workflow + "2", actions}:                                                          ErrOtherKey,
			{"https://github.com/other/*", actions}:                                            ErrOtherKey,
			{strings.TrimSuffix(workflow, "1") + "*", ""}:                                      ErrOtherKey,
		} {
			signer, err := Keyless{root, name}.Verify(text, Signature, digest)
			require.ErrorIs(t, err, want, name)
			if err == nil {
				assert.Equal(t, identity.String(), signer, "the whole name")
			}
		}
	}
	_, err := root.Verify(s.Sign(sigstore.Signature{Digest: digest, Name: workflow, Issuer: actions,
		Predicate: "https://slsa.dev/provenance/v1"}), Signature, digest)
	require.ErrorContains(t, err, "it states")
}

// TestTheRecordedSignature was made by cosign with Sigstore's public services in February 2025, for another kind of
// statement than a module's signature. The files are public, from the repositories of cosign and sigstore-go
// (Apache-2.0).
func TestTheRecordedSignature(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "recorded.sigstore.json"))
	require.NoError(t, err)
	trusted, err := os.ReadFile(filepath.Join("testdata", "public-good.json"))
	require.NoError(t, err)
	root, err := ReadRoot(trusted)
	require.NoError(t, err)
	b, err := readBundle(text)
	require.NoError(t, err)
	identity, err := root.verifySignature(b, verify.WithoutArtifactUnsafe())
	require.NoError(t, err)
	assert.Equal(t, Identity{"cody@soyland.com", "https://github.com/login/oauth"}, identity)
	assert.Contains(t, string(b.payload), "https://cosign.sigstore.dev/attestation/v1")
	_, err = root.Verify(text, Signature, "sha256:732112270d7e59418a8c080b134b24cabd67d250d0d0147a97ed95ba5c280aa4")
	require.ErrorContains(t, err, "it states")
}

// change modifies a value in a bundle or a trusted root.
type change func(v any) any

func with(v any) change { return func(any) any { return v } }

// times repeats the first element of a list.
func times(n int) change {
	return func(v any) any { return slices.Repeat(v.([]any)[:1], n) }
}

// and appends a list.
func and(more any) change {
	return func(v any) any { return append(v.([]any), more.([]any)...) }
}

// flipped changes the last bit of a value in base64.
func flipped(v any) any {
	raw, err := base64.StdEncoding.DecodeString(v.(string))
	if err != nil {
		panic(err)
	}
	raw[len(raw)-1] ^= 1
	return base64.StdEncoding.EncodeToString(raw)
}

// changed applies a change at a path of a JSON text. Digits in the path are indexes.
func changed(t testing.TB, text []byte, at string, c change) []byte {
	var v any
	require.NoError(t, json.Unmarshal(text, &v))
	var walk func(v any, path []string) any
	walk = func(v any, path []string) any {
		if len(path) == 0 {
			return c(v)
		}
		switch in := v.(type) {
		case map[string]any:
			if made := walk(in[path[0]], path[1:]); made == nil {
				delete(in, path[0])
			} else {
				in[path[0]] = made
			}
		case []any:
			in[path[0][0]-'0'] = walk(in[path[0][0]-'0'], path[1:])
		default:
			require.Fail(t, "no such path", at)
		}
		return v
	}
	out, err := json.Marshal(walk(v, strings.Split(at, ".")))
	require.NoError(t, err)
	return out
}

func TestAChangedKeylessSignatureIsRefused(t *testing.T) {
	const entry = "verificationMaterial.tlogEntries.0."
	s := sigstore.New(t)
	root := rootOf(t, s)
	made := map[bool][]byte{}
	for _, version2 := range []bool{false, true} {
		made[version2] = s.Sign(sigstore.Signature{Digest: digest, Name: workflow, Issuer: actions, Version2: version2})
	}
	stranger := s.Sign(sigstore.Signature{Digest: digest, Name: "https://stranger.example", Issuer: actions})
	elsewhere := sigstore.New(t).Sign(sigstore.Signature{Digest: digest, Name: workflow, Issuer: actions})
	at := func(text []byte, at string) any {
		var v any
		require.NoError(t, json.Unmarshal(text, &v))
		for _, step := range strings.Split(at, ".") {
			if step == "0" {
				v = v.([]any)[0]
			} else {
				v = v.(map[string]any)[step]
			}
		}
		return v
	}
	of := func(path string) any { return at(stranger, path) }
	for _, one := range []struct {
		at   string
		do   change
		want string
		only int // 1 or 2: the version of Rekor
	}{
		{"mediaType", with("text/plain"), "unsupported media type", 0},
		{"dsseEnvelope", with(nil), "missing bundle content", 0},
		{"dsseEnvelope.payload", with("!"), "not a Sigstore bundle", 0},
		{"dsseEnvelope.payload", flipped, "its statement is not JSON", 0},
		{"dsseEnvelope.payloadType", with("text/plain"), "payload of type", 0},
		{"dsseEnvelope.signatures.0.sig", flipped, "not signed by its certificate", 0},
		{"dsseEnvelope.signatures", with([]any{}), "exactly one signature", 0},
		{"dsseEnvelope.signatures", times(2), "exactly one signature", 0},
		{"dsseEnvelope", with(of("dsseEnvelope")), "not signed by its certificate", 0},
		{"verificationMaterial.certificate", with(nil), "missing verification material", 0},
		{"verificationMaterial.certificate.rawBytes", with("AAAA"), "no key or certificate that can be read", 0},
		// The signature of a certificate is at its end.
		{"verificationMaterial.certificate.rawBytes", flipped, "its log does not vouch", 0},
		{"verificationMaterial.certificate", with(of("verificationMaterial.certificate")), "not signed by", 0},
		{"verificationMaterial.tlogEntries", with([]any{}), "it is in no transparency log", 0},
		{"verificationMaterial.tlogEntries", and(of("verificationMaterial.tlogEntries")), "its log does not vouch", 0},
		{"verificationMaterial.tlogEntries", and(at(elsewhere, "verificationMaterial.tlogEntries")),
			"the trusted root does not have", 0},
		{"verificationMaterial.tlogEntries", times(33), "too many tlog entries", 0},
		{"verificationMaterial.timestampVerificationData.rfc3161Timestamps", times(33), "more than 32 timestamps", 2},
		{entry + "logId.keyId", flipped, "the trusted root does not have", 0},
		{entry + "kindVersion.version", with("0.0.9"), "its log entry is of kind", 0},
		{entry + "kindVersion.kind", with("intoto"), "its log entry is of kind", 0},
		{entry + "canonicalizedBody", flipped, "not a Sigstore bundle", 0},
		{entry + "canonicalizedBody", with(of(entry + "canonicalizedBody")), "the proof does not lead", 0},
		{"verificationMaterial.tlogEntries", with(of("verificationMaterial.tlogEntries")), "its log does not vouch", 0},
		{entry + "inclusionProof", with(nil), "inclusion proof missing", 0},
		{entry + "inclusionProof.rootHash", flipped, "checkpoint is of another tree", 0},
		{entry + "inclusionProof.treeSize", with("8"), "checkpoint is of another tree", 0},
		{entry + "inclusionProof.logIndex", with("4"), "the proof does not lead", 0},
		{entry + "inclusionProof.logIndex", with("-1"), "the proof does not lead", 0},
		{entry + "inclusionProof.hashes.0", flipped, "the proof does not lead", 0},
		{entry + "inclusionProof.hashes", with([]any{}), "the proof does not lead", 0},
		{entry + "inclusionProof.checkpoint.envelope", with("log.example\n"), "checkpoint is of another tree", 0},
		{entry + "inclusionProof.checkpoint.envelope", func(v any) any {
			return strings.Replace(v.(string), "\n7\n", "\n8\n", 1)
		}, "checkpoint is of another tree", 0},
		{entry + "inclusionProof.checkpoint.envelope", func(v any) any { // the first bytes of the key's ID
			return regexp.MustCompile(`(— \S+ )....`).ReplaceAllString(v.(string), "${1}AAAA")
		}, "its log does not vouch", 0},
		{entry + "integratedTime", with("1767225600"), "its log does not vouch", 1},
		{entry + "logIndex", with("5"), "its log does not vouch", 1},
		{entry + "inclusionPromise.signedEntryTimestamp", flipped, "its log does not vouch", 1},
		{entry + "inclusionPromise", with(nil), "neither a log nor a clock says when", 1},
		{"verificationMaterial.timestampVerificationData", with(nil), "neither a log nor a clock says when", 2},
		{"verificationMaterial.timestampVerificationData.rfc3161Timestamps.0.signedTimestamp", flipped,
			"no clock of the trusted root", 2},
		{"verificationMaterial.timestampVerificationData.rfc3161Timestamps.0.signedTimestamp", with("AAAA"),
			"no clock of the trusted root", 2},
	} {
		for version2, text := range made {
			if one.only == 1 && version2 || one.only == 2 && !version2 {
				continue
			}
			_, err := root.Verify(changed(t, text, one.at, one.do), Signature, digest)
			assert.ErrorContains(t, err, one.want, "%s, version 2: %t", one.at, version2)
		}
	}
	_, err := root.Verify([]byte("{"), Signature, digest)
	require.ErrorContains(t, err, "not a Sigstore bundle")
}

// TestWhatTheRootDoesNotHaveDoesNotCount: each of its keys and times matters.
func TestWhatTheRootDoesNotHaveDoesNotCount(t *testing.T) {
	s, other := sigstore.New(t), sigstore.New(t)
	valid := func(start, end string) change { return with(map[string]any{"start": start, "end": end}) }
	early := valid("2026-01-01T00:00:00Z", "2026-11-02T08:59:59Z")
	late := valid("2026-11-02T09:00:01Z", "2030-01-01T00:00:00Z")
	of := func(at string) change {
		var v map[string]any
		require.NoError(t, json.Unmarshal(other.Root(), &v))
		return with(v[at])
	}
	for _, one := range []struct {
		at   string
		do   change
		want string
		v2   bool
	}{
		{"tlogs", of("tlogs"), "the trusted root does not have", false},
		{"ctlogs", of("ctlogs"), "in no log of certificates that the trusted root has", false},
		{"certificateAuthorities", of("certificateAuthorities"), "not by an issuer of the trusted root", false},
		{"timestampAuthorities", of("timestampAuthorities"), "no clock of the trusted root", true},
		{"timestampAuthorities", with(nil), "no clock of the trusted root", true},
		{"tlogs.0.publicKey.validFor", early, "its log does not vouch", false},
		{"tlogs.0.publicKey.validFor", late, "its log does not vouch", false},
		{"tlogs.0.publicKey.validFor", early, "log was not valid at the time", true},
		{"tlogs.0.publicKey.validFor", late, "log was not valid at the time", true},
		{"ctlogs.0.publicKey.validFor", early, "in no log of certificates", false},
		{"ctlogs.0.publicKey.validFor", late, "in no log of certificates", false},
		{"certificateAuthorities.0.validFor", early, "not by an issuer of the trusted root, or had expired", false},
		{"certificateAuthorities.0.validFor", late, "not by an issuer of the trusted root, or had expired", true},
		{"timestampAuthorities.0.validFor", early, "no clock of the trusted root", true},
		{"timestampAuthorities.0.validFor", late, "no clock of the trusted root", true},
	} {
		root, err := ReadRoot(changed(t, s.Root(), one.at, one.do))
		require.NoError(t, err, one.at)
		_, err = root.Verify(s.Sign(sigstore.Signature{Digest: digest, Name: workflow, Issuer: actions,
			Version2: one.v2}), Signature, digest)
		assert.ErrorContains(t, err, one.want, one.at)
	}
}

// TestACertificateCountsInItsMinutes: if a log's or a clock's time is outside its validity, the signature was made with
// an old key.
func TestACertificateCountsInItsMinutes(t *testing.T) {
	s := sigstore.New(t)
	root := rootOf(t, s)
	for _, version2 := range []bool{false, true} {
		for seen, ok := range map[time.Duration]bool{-2 * time.Minute: false, 0: true, 8 * time.Minute: true,
			10 * time.Minute: false, 365 * 24 * time.Hour: false} {
			_, err := root.Verify(s.Sign(sigstore.Signature{Digest: digest, Name: workflow, Issuer: actions,
				Version2: version2, Seen: sigstore.Made.Add(seen)}), Signature, digest)
			if ok {
				require.NoError(t, err)
				continue
			}
			assert.Regexp(t, "outside certificate validity|or had expired", err, "%s", seen)
		}
	}
}

// TestEachPartOfAKeylessSignatureCounts: things that Sigstore's services would not create, each with everything else
// valid, so that no other check finds it.
func TestEachPartOfAKeylessSignatureCounts(t *testing.T) {
	s := sigstore.New(t)
	root := rootOf(t, s)
	set := func(at string, v any) func(map[string]any) {
		return func(spec map[string]any) {
			steps := strings.Split(at, ".")
			for _, step := range steps[:len(steps)-1] {
				spec = spec[step].(map[string]any)
			}
			spec[steps[len(steps)-1]] = v
		}
	}
	first := func(change func(map[string]any)) func(map[string]any) {
		return func(spec map[string]any) { change(spec["signatures"].([]any)[0].(map[string]any)) }
	}
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[(at+len(b))%len(b)] ^= 1; return b }
	}
	issued := func(change func(c *x509.Certificate)) sigstore.Wrong { return sigstore.Wrong{Certificate: change} }
	const v1, v2 = 1, 2
	for what, one := range map[string]struct {
		wrong sigstore.Wrong
		want  string
		only  int // v1, v2; 0 is both
	}{
		"a key on another curve": {sigstore.Wrong{Curve: elliptic.P384()}, "not of ECDSA on P-256", 0},
		"a certificate for another use": {issued(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}), "leaf certificate verification failed", 0},
		"two names": {issued(func(c *x509.Certificate) { c.EmailAddresses = []string{"me@team.example"} }),
			"has 2 names", 0},
		"an e-mail address like a URI": {issued(func(c *x509.Certificate) {
			c.URIs, c.EmailAddresses = nil, []string{"https://github.com/team/w.yml@stranger.example"}
		}), "would pass for a URI", 0},
		"no name": {issued(func(c *x509.Certificate) { c.URIs = nil }), "has 0 names", 0},
		"no issuer": {issued(func(c *x509.Certificate) { c.ExtraExtensions = nil }),
			"does not say who checked the identity", 0},
		"an issuer with more behind it": {issued(func(c *x509.Certificate) {
			c.ExtraExtensions[1].Value = append(c.ExtraExtensions[1].Value, 0)
		}), "issuer extension cannot be read", 0},
		"no promise of a log of certificates": {sigstore.Wrong{Promise: func([]byte) []byte { return nil }},
			"its certificate is in no log of certificates", 0},
		"a promise of another version":     {sigstore.Wrong{Promise: flip(0)}, "in no log of certificates", 0},
		"a promise of another log":         {sigstore.Wrong{Promise: flip(1)}, "that the trusted root has", 0},
		"a promise for another time":       {sigstore.Wrong{Promise: flip(40)}, "that the trusted root has", 0},
		"a promise with another signature": {sigstore.Wrong{Promise: flip(-1)}, "that the trusted root has", 0},
		"a promise with more behind it": {sigstore.Wrong{Promise: func(b []byte) []byte { return append(b, 0) }},
			"in no log of certificates", 0},
		"an entry with two signatures": {sigstore.Wrong{Spec: func(spec map[string]any) {
			spec["signatures"] = append(spec["signatures"].([]any), spec["signatures"].([]any)[0])
		}}, "has 2 signatures", v1},
		"an entry with another signature": {sigstore.Wrong{Spec: first(set("signature", []byte("other")))},
			"its log does not vouch", v1},
		"an entry with another certificate": {sigstore.Wrong{Spec: first(set("verifier",
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("other")})))}, "its log does not vouch", v1},
		"an entry without a certificate": {sigstore.Wrong{Spec: first(set("verifier", []byte("none")))},
			"its log does not vouch", v1},
		"an entry of another hash": {sigstore.Wrong{Spec: set("payloadHash.algorithm", "sha512")},
			"should be one of [sha256]", v1},
		"an entry of another payload": {sigstore.Wrong{Spec: set("payloadHash.value", strings.Repeat("0a", 32))},
			"its log does not vouch", v1},
		"an entry with another signature, version 2": {sigstore.Wrong{Spec: set("signature.content", []byte("other"))},
			"its log does not vouch", v2},
		"an entry with another certificate, version 2": {sigstore.Wrong{
			Spec: set("signature.verifier.x509Certificate.rawBytes", []byte("other"))}, "its log does not vouch", v2},
		"an entry of another hash, version 2": {sigstore.Wrong{Spec: set("data.algorithm", "SHA2_512")},
			"its log does not vouch", v2},
		"an entry of another payload, version 2": {sigstore.Wrong{Spec: set("data.digest", []byte("other"))},
			"its log does not vouch", v2},
		"an entry of version 2 in a log of version 1": {sigstore.Wrong{Log: "log.example - 4711",
			Spec: set("signature.content", []byte("other"))}, "of another version than its log", v2},
		"a timestamp of another signature": {sigstore.Wrong{Stamp: func(t *timestamp.Timestamp) {
			t.HashedMessage = make([]byte, sha256.Size)
		}}, "hashed messages don't match", v2},
		"one time of two after the certificate's": {sigstore.Wrong{Later: sigstore.Made.Add(time.Hour)},
			"or had expired", 0},
	} {
		for _, version := range []int{v1, v2} {
			if one.only != 0 && one.only != version {
				continue
			}
			_, err := root.Verify(s.Sign(sigstore.Signature{Digest: digest, Name: workflow, Issuer: actions,
				Version2: version == v2, Wrong: one.wrong}), Signature, digest)
			assert.ErrorContains(t, err, one.want, "%s, version %d", what, version)
		}
	}
	_, err := root.Verify(s.Sign(sigstore.Signature{Digest: digest, Name: workflow, Issuer: actions,
		Wrong: sigstore.Wrong{Later: sigstore.Made.Add(time.Minute)}}), Signature, digest)
	require.NoError(t, err, "a log and a clock may both have seen it")
}

// TestEachWitnessCounts: a valid log entry or timestamp does not compensate for an invalid one.
func TestEachWitnessCounts(t *testing.T) {
	s := sigstore.New(t)
	later := sigstore.Made.Add(time.Minute)
	text := s.Sign(sigstore.Signature{Digest: digest, Name: workflow, Issuer: actions, Version2: true,
		Wrong: sigstore.Wrong{Later: later}})
	root := rootOf(t, s)
	_, err := root.Verify(text, Signature, digest)
	require.NoError(t, err)
	for _, at := range []string{"0", "1"} {
		at = "verificationMaterial.timestampVerificationData.rfc3161Timestamps." + at + ".signedTimestamp"
		_, err = root.Verify(changed(t, text, at, flipped), Signature, digest)
		require.ErrorContains(t, err, "no clock of the trusted root", at)
	}

	var file map[string]any
	require.NoError(t, json.Unmarshal(s.Root(), &file))
	period := func(start, end time.Time) any {
		issuer := maps.Clone(file["certificateAuthorities"].([]any)[0].(map[string]any))
		issuer["validFor"] = map[string]any{"start": start, "end": end}
		return issuer
	}
	parts, err := ReadRoot(changed(t, s.Root(), "certificateAuthorities", with([]any{
		period(s.Start, sigstore.Made), period(later, later.AddDate(1, 0, 0))})))
	require.NoError(t, err)
	_, err = parts.Verify(text, Signature, digest)
	require.ErrorContains(t, err, "no issuer of the trusted root was valid at all of its times")
}

// TestAClockIsNamedByTheRoot: an authority alone would vouch for any clock that it certifies.
func TestAClockIsNamedByTheRoot(t *testing.T) {
	s := sigstore.New(t)
	text := s.Sign(sigstore.Signature{Digest: digest, Name: workflow, Issuer: actions, Version2: true,
		Wrong: sigstore.Wrong{Stamp: func(t *timestamp.Timestamp) { t.AddTSACertificate = true }}})
	_, err := rootOf(t, s).Verify(text, Signature, digest)
	require.NoError(t, err)
	root, err := ReadRoot(changed(t, s.Root(), "timestampAuthorities.0.certChain.certificates", func(v any) any {
		return []any{v.([]any)[1], v.([]any)[1]}
	}))
	require.NoError(t, err)
	_, err = root.Verify(text, Signature, digest)
	require.ErrorContains(t, err, "no clock of the trusted root")
}

// TestAClocksCertificateCounts: it is in the trusted root, but must also be for clocks, and valid.
func TestAClocksCertificateCounts(t *testing.T) {
	valid := func(year int) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.NotBefore = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			c.NotAfter = c.NotBefore.AddDate(1, 0, 0)
		}
	}
	for what, one := range map[string]struct {
		change func(*x509.Certificate)
		want   string
	}{
		"as it should be": {func(*x509.Certificate) {}, ""},
		"not for clocks":  {func(c *x509.Certificate) { c.ExtraExtensions = nil }, "EKU"},
		"not critical":    {func(c *x509.Certificate) { c.ExtraExtensions[0].Critical = false }, "critical"},
		"over by then":    {valid(2025), "no clock of the trusted root"},
		"not valid yet":   {valid(2027), "no clock of the trusted root"},
	} {
		s := sigstore.New(t, one.change)
		_, err := rootOf(t, s).Verify(s.Sign(sigstore.Signature{Digest: digest, Name: workflow, Issuer: actions,
			Version2: true}), Signature, digest)
		if one.want == "" {
			require.NoError(t, err)
			continue
		}
		assert.ErrorContains(t, err, one.want, what)
	}
}

func TestATrustedRootIsRead(t *testing.T) {
	s := sigstore.New(t)
	for _, text := range [][]byte{nil, []byte("{}"), []byte("no JSON"),
		changed(t, s.Root(), "mediaType", with("text/plain")),
		changed(t, s.Root(), "tlogs", with(nil)), changed(t, s.Root(), "ctlogs", with([]any{})),
		changed(t, s.Root(), "certificateAuthorities", with(nil)),
		changed(t, s.Root(), "certificateAuthorities.0.certChain.certificates", with([]any{})),
		changed(t, s.Root(), "certificateAuthorities.0.certChain.certificates.0.rawBytes", with("AAAA")),
		changed(t, s.Root(), "timestampAuthorities.0.certChain.certificates.1", with(nil)),
		changed(t, s.Root(), "tlogs.0.publicKey.rawBytes", with("AAAA")),
	} {
		_, err := ReadRoot(text)
		require.Error(t, err, "%s", text)
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
	}
}

func FuzzKeylessSignatures(f *testing.F) {
	s := sigstore.New(f)
	root := rootOf(f, s)
	for _, version2 := range []bool{false, true} {
		f.Add(s.Sign(sigstore.Signature{Digest: digest, Name: workflow, Issuer: actions, Version2: version2}))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		Signer(text)
		if i, err := root.Verify(text, Signature, digest); err == nil {
			assert.Equal(t, Identity{workflow, actions}, i)
		}
	})
}
