package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheCommittedCodecsAreUpToDate(t *testing.T) {
	want, err := Generate("../../abi", "codec_gen.go")
	require.NoError(t, err)
	got, err := os.ReadFile("../../abi/codec_gen.go")
	require.NoError(t, err)
	require.True(t, string(want) == string(got), "run: go generate ./abi")
}

func generate(t *testing.T, source string) (string, error) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\n\n"+source), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old.go"), []byte("not even Go"), 0o644))
	out, err := Generate(dir, "old.go")
	return string(out), err
}

func TestUntaggedStructsAndFieldsAreLeftOut(t *testing.T) {
	out, err := generate(t, "type W string\ntype Plain struct{ A chan int }\ntype T struct {\n\tA W "+
		"`json:\"a\"`\n\tcause error\n}\n")
	require.NoError(t, err)
	require.Contains(t, out, "package a\n")
	require.Contains(t, out, "func (x *T) Encode(e *wirejson.Encoder)")
	require.NotContains(t, out, "Plain")
	require.NotContains(t, out, "cause")
}

func TestFieldsAreWrittenAndReadByFunctions(t *testing.T) {
	out, err := generate(t, "type Raw []byte\ntype T struct {\n\tA Raw `json:\"a\" codec:\"document\"`\n\tB "+
		"map[string]bool `json:\"b,omitempty\"`\n"+
		"\tC string `json:\"c\"`\n\tD *int64 `json:\"d,omitempty\"`\n\tE int64 `json:\"e,omitempty\"`\n\tF []bool "+
		"`json:\"f\"`\n\tG map[string]Raw `json:\"g,omitempty\"`\n\tH map[string]U `json:\"h\"`\n\tI string "+
		"`json:\"i\" codec:\"host\"`\n\tJ []string `json:\"j,omitzero\"`\n\tK map[string][]string "+
		"`json:\"k\"`\n}\ntype U struct {\n\tA bool `json:\"a\"`\n}\n")
	require.NoError(t, err)
	for _, line := range []string{
		"\te.FieldStart(\"a\")\n\twriteRaw(x.A, e)\n",
		"\twriteSomeMap(\"b\", x.B, e, writeBool)\n",
		"\twriteStringField(\"c\", &x.C, e)\n",
		"\twriteSomePtr(\"d\", x.D, e, writeInt)\n",
		"\twriteSome(\"e\", x.E, e, writeInt)\n",
		"\te.FieldStart(\"f\")\n\twriteSlice(x.F, e, writeBool)\n",
		"\twriteSomeMap(\"g\", x.G, e, writeRaw)\n",
		"\te.FieldStart(\"h\")\n\twriteStructMap(x.H, e, (*U).Encode)\n",
		"\tif !inGuest {\n\t\twriteStringField(\"i\", &x.I, e)\n\t}\n",
		"\tif x.J != nil {\n\t\te.FieldStart(\"j\")\n\t\twriteSlice(x.J, e, writeString)\n\t}\n",
		"\te.FieldStart(\"k\")\n\twriteMap(x.K, e, writeTexts)\n",
		"\t\t\to.err = readMap(&x.K, d, m, readTexts)\n",
		"\t\t\to.err = readMap(&x.H, d, m, (*U).Decode)\n",
		"\t\tswitch o.key {\n\t\tcase \"a\":\n\t\t\to.err = readDocument(&x.A, d, m)\n",
		"\t\tcase \"b\":\n\t\t\to.err = readMap(&x.B, d, m, readBool)\n",
		"\t\t\to.unknown(d, m, \"a b c d e f g h i j k\")\n",
	} {
		require.Contains(t, out, line)
	}
}

func TestWhatHasNoCodecIsRefused(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"type T struct {\n\tA int `json:\"a\"`\n}", "T.A: no codec for its type"},
		{"type T struct {\n\tA map[int64]string `json:\"a\"`\n}", "T.A: no codec for its type"},
		{"type T struct {\n\tA map[string]*U `json:\"a\"`\n}\ntype U struct {\n\tB bool `json:\"b\"`\n}",
			"T.A: no codec for its type"},
		{"type T struct {\n\tA Sorted[Raw] `json:\"a\"`\n}", "T.A: no codec for its type"},
		{"type T struct {\n\tA [2]string `json:\"a\"`\n}", "T.A: no codec for its type"},
		{"type T struct {\n\tA *[]string `json:\"a\"`\n}", "T.A: no codec for its type"},
		{"type T struct {\n\tA []*U `json:\"a\"`\n}\ntype U struct {\n\tB bool `json:\"b\"`\n}",
			"T.A: no codec for its type"},
		{"type T struct {\n\tA bool `json:\"a\"`\n\tB bool\n}", "a.go: T.B has no json tag"},
		{"type T struct {\n\tA bool `json:\"a\"`\n\tU\n}", "a.go: T.U, embedded, has no json tag"},
		{"type T struct {\n\tA int64 `json:\"a,string\"`\n}", "a.go: T.A: no codec for the tag's option string"},
		{"type T struct {\n\tA string `json:\"a,omitzero\"`\n}", "a.go: T.A: no codec for the tag's option omitzero"},
		{"type T struct {\n\tA map[string][]bool `json:\"a\"`\n}", "T.A: no codec for its type"},
		{"type T struct {\n\tA Raw `json:\"a\" codec:\"text\"`\n}",
			"a.go: T.A: no codec of the form text for its type"},
		{"type T struct {\n\tA string `json:\"a\" codec:\"document\"`\n}",
			"a.go: T.A: no codec of the form document for its type"},
	} {
		_, err := generate(t, c.source)
		require.EqualError(t, err, c.want)
	}
}
