package egress

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
)

func TestRedactorRemovesSecretsWhateverTheirForm(t *testing.T) {
	r := NewRedactor([]string{`pa"ss\word`, "tok-12345"})
	assert.Equal(t, "a "+Redacted+" b", r.Text("a tok-12345 b"))
	assert.NotContains(t, r.Text(`{"k":"pa\"ss\\word"}`), "ss")
	status := int64(500)
	e := r.Error(&abi.Error{Code: abi.CodeBackend, Message: "m tok-12345", Hint: "tok-12345",
		Native: &abi.NativeError{Status: &status, Body: strings.Repeat("é", 3000) + "tok-12345"}})
	assert.NotContains(t, e.Message+e.Hint+e.Native.Body, "tok-12345")
	assert.LessOrEqual(t, len(e.Native.Body), abi.NativeBodyLimit)
}

// A backend that echoes its credential does not reveal it to a guest, in whatever common encoding it does so.
func TestRedactorFindsASecretInEveryUsualEncoding(t *testing.T) {
	const secret = "sk/a=b+c%41 Zé\"1"
	r := NewRedactor([]string{secret, "plain-token-77"})
	full := func(s string) (out string) {
		for _, u := range utf16.Encode([]rune(s)) {
			out += fmt.Sprintf(`\u%04X`, u)
		}
		return out
	}
	quote := func(s string) string {
		b, err := json.Marshal(s)
		require.NoError(t, err)
		return string(b[1 : len(b)-1])
	}
	slashes := strings.ReplaceAll(quote(secret), "/", `\/`)
	for name, echoed := range map[string]string{
		"as it is":                   secret,
		"in JSON":                    quote(secret),
		"escaped slashes":            slashes,
		"one character escaped":      strings.Replace(quote(secret), "=", `\u003d`, 1),
		"every character escaped":    full(secret),
		"percent-encoded":            url.PathEscape(secret),
		"percent-encoded, as a form": url.QueryEscape(secret),
		"every character percent-encoded": fmt.Sprintf("%%%s",
			strings.Join(strings.Split(fmt.Sprintf("% x", secret), " "), "%")),
		"JSON inside JSON":                quote(slashes),
		"JSON inside JSON inside JSON":    quote(quote(slashes)),
		"percent-encoded in full escapes": full(url.PathEscape(secret)),
		"base64":                          base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64 with escaped slashes": strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(secret)), "/",
			`\/`),
		"base64 for URLs":         base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"base64 with a user":      base64.StdEncoding.EncodeToString([]byte("a:" + secret)),
		"base64 behind Bearer":    base64.StdEncoding.EncodeToString([]byte("Bearer " + secret + "\n")),
		"base64, percent-encoded": url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("ab" + secret))),
	} {
		t.Run(name, func(t *testing.T) {
			for _, around := range [][2]string{{"", ""}, {`{"error":"bad key `, `","é":"\u00e9\/%20"}`},
				{"\\%%", "%\\"}} {
				got := r.Text(around[0] + echoed + around[1])
				require.Equal(t, 1, strings.Count(got, Redacted), "%s", got)
				if strings.HasPrefix(name, "base64") {
					continue // the characters at its ends also depend on the surrounding text
				}
				require.Equal(t, around[0]+Redacted+around[1], got)
			}
		})
	}
	require.Equal(t, "a "+Redacted+Redacted+" b", r.Text("a plain-token-77plain\\u002Dtoken-77 b"))
}

// Ordinary text is unchanged, byte for byte, including its escapes.
func TestRedactorChangesNothingElse(t *testing.T) {
	r := NewRedactor([]string{"sk-very-secret-12345", `\u0041`, "%41%42"})
	for _, text := range []string{"", `\`, `%`, `{"a":"\u00e9\ud83d\ude00 \n \/ % %4 %zz \u12"}`, "A AB \xff\\",
		"sk-very-secret-1234"} {
		b := []byte(text)
		got := r.Bytes(b)
		require.Equal(t, text, string(got))
		if len(b) > 0 {
			require.Same(t, &b[0], &got[0])
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringMatching(`([a-z"\\/%u0-9é]|\\u00[0-9a-f]{2}|%[0-9a-f]{2}){0,40}`).Draw(rt, "text")
		secret := rapid.StringMatching(`[A-Z]{6,12}`).Draw(rt, "secret")
		at := rapid.IntRange(0, len(text)).Draw(rt, "at")
		require.Equal(rt, text[:at]+Redacted+text[at:], NewRedactor([]string{secret}).Text(text[:at]+secret+text[at:]))
	})
}

// Decoding remembers the position of each escape.
func TestDecodeKnowsWhereEachPartWas(t *testing.T) {
	for text, want := range map[string]string{`a\/b%2Fc`: "a/b/c", `\u00e9%C3%A9`: "éé", `\ud83d\ude00x`: "😀x",
		`\\u0041`: `\u0041`, `%\%4\u00`: `%\%4\u00`} {
		decoded, layer := decode([]byte(text))
		require.Equal(t, want, string(decoded))
		for i := range decoded {
			s := layer.origin(span{i, i + 1})
			one, _ := decode([]byte(text)[s.start:s.end])
			require.Contains(t, string(one), string(decoded[i:i+1]), "%s at %d", text, i)
		}
	}
}

// A hostile backend answers with nothing but escapes.
func TestHostileAnswerOfEscapesStaysSmall(t *testing.T) {
	r := NewRedactor([]string{"sk-very-secret-12345"})
	body := bytes.Repeat([]byte(`\\`), 4<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.Len(t, r.Bytes(body), len(body))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(500<<20), "bytes allocated for 16 MiB")
}

func BenchmarkRedactor(b *testing.B) {
	r := NewRedactor([]string{"sk-very-secret-12345"})
	body := []byte(strings.Repeat(`{"id":"m-1","memory":"He said \"tea\" on Monday\n","score":0.91},`, 200))
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		r.Bytes(body)
	}
}
