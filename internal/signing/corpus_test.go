package signing

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/sigstore"
)

// unsigned matches accepted changes, which do not change anything that matters: the version of the bundle says how to
// parse it, and a witness may occur twice.
var unsigned = regexp.MustCompile(`^\.mediaType character 39 |` +
	`^\.verificationMaterial\.tlogEntries twice$|` +
	`^\.verificationMaterial\.timestampVerificationData\.rfc3161Timestamps twice$`)

// Two texts are only signed in part. A log's key is found by its hash, not by its name before the signature. The head
// of a timestamp response is not signed, nor are the parameters of its algorithms, whose positions vary.
var isName = regexp.MustCompile(`^character \d+ after "[^"]*\\n\\n— [^ "]*"$`)

const (
	checkpoint = ".verificationMaterial.tlogEntries.0.inclusionProof.checkpoint.envelope"
	stamp      = ".verificationMaterial.timestampVerificationData.rfc3161Timestamps.0.signedTimestamp"
	inStamp    = 35
)

// TestASingleChangeIsRefused makes thousands of single changes to a recorded public bundle and to generated ones. Only
// changes to unsigned fields may be accepted: those of unsigned.
func TestASingleChangeIsRefused(t *testing.T) {
	stride := 3 // 4,800 changes; 11,100 without it
	if brief.Tests() {
		stride = 31
	}
	s := sigstore.New(t)
	public, err := os.ReadFile(filepath.Join("testdata", "public-good.json"))
	require.NoError(t, err)
	recorded, err := os.ReadFile(filepath.Join("testdata", "recorded.sigstore.json"))
	require.NoError(t, err)
	publicRoot, err := ReadRoot(public)
	require.NoError(t, err)
	made := func(version2 bool) []byte {
		return s.Sign(sigstore.Signature{Digest: digest, Name: workflow, Issuer: actions, Version2: version2})
	}
	for name, one := range map[string]struct {
		root *Root
		text []byte
	}{
		"recorded":  {publicRoot, recorded},
		"version 1": {rootOf(t, s), made(false)},
		"version 2": {rootOf(t, s), made(true)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, acceptAny(one.root, one.text))
			n, stamps := 0, 0
			eachChange(t, one.text, stride, func(at, what string, text []byte) {
				n++
				if acceptAny(one.root, text) != nil {
					return
				}
				switch {
				case unsigned.MatchString(at + " " + what):
				case at == checkpoint && isName.MatchString(what):
				case at == stamp:
					stamps++
				default:
					assert.Fail(t, "accepted", "%s: %s", at, what)
				}
			})
			assert.Greater(t, n, 300)
			assert.LessOrEqual(t, stamps, inStamp)
			t.Logf("%d changes", n)
		})
	}
}

func acceptAny(r *Root, text []byte) error {
	b, err := readBundle(text)
	if err != nil {
		return err
	}
	_, err = r.verifySignature(b, verify.WithoutArtifactUnsafe())
	return err
}

// eachChange visits a JSON text with one change at a time: a bit in each stride-th byte of a base64 value, a character
// of any other text, a number, a member that is missing or null, a list that is empty or has a duplicate element.
func eachChange(t *testing.T, text []byte, stride int, visit func(at, what string, changed []byte)) {
	var whole any
	require.NoError(t, json.Unmarshal(text, &whole))
	show := func(at, what string) {
		changed, err := json.Marshal(whole)
		require.NoError(t, err)
		visit(at, what, changed)
	}
	var walk func(at string, v any, set func(any))
	walk = func(at string, v any, set func(any)) {
		try := func(what string, changed any) {
			set(changed)
			show(at, what)
			set(v)
		}
		try("null", nil)
		try("number", 77)
		try("object", map[string]any{})
		try("text", "x")
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				was := v[key]
				delete(v, key)
				show(at+"."+key, "missing")
				v[key] = was
				walk(at+"."+key, was, func(changed any) { v[key] = changed })
			}
		case []any:
			try("empty list", []any{})
			try("no list", v[0])
			try("twice", append(slices.Clone(v), v[0]))
			for i := range v {
				walk(fmt.Sprintf("%s.%d", at, i), v[i], func(changed any) { v[i] = changed })
				try(fmt.Sprintf("without %d", i), slices.Delete(slices.Clone(v), i, i+1))
			}
		case string:
			try("empty", "")
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				for _, changed := range []int64{n + 1, n - 1, -n, 0, -1, n << 1, 1<<63 - 1, -1 << 63} {
					if changed != n {
						try(strconv.FormatInt(changed, 10), strconv.FormatInt(changed, 10))
					}
				}
				return
			}
			if raw, err := base64.StdEncoding.DecodeString(v); err == nil && len(v) > 8 {
				for i := 0; i < len(raw); i += stride {
					raw[i] ^= 1 << (i % 8)
					try(fmt.Sprintf("byte %d", i), base64.StdEncoding.EncodeToString(raw))
					raw[i] ^= 1 << (i % 8)
				}
				try("longer", base64.StdEncoding.EncodeToString(append(slices.Clone(raw), 0)))
				try("shorter", base64.StdEncoding.EncodeToString(raw[:len(raw)-1]))
				return
			}
			for i := range v {
				try(fmt.Sprintf("character %d after %q", i, v[:i]), v[:i]+string(rune(v[i]^1))+v[i+1:])
			}
			try("longer", v+"x")
			try("shorter", v[:len(v)-1])
		case bool:
			try("not", !v)
		}
	}
	walk("", whole, func(changed any) { whole = changed })
}
