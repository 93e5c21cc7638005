package egress

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNoPartOfAnAnswerCarriesASecret fills every text in an answer, including names, with a secret. It walks the
// contract's types by reflection, so that new fields are covered.
func TestNoPartOfAnAnswerCarriesASecret(t *testing.T) {
	const secret = "S3cr3t-of-the-Operator"
	route := &Route{redactor: NewRedactor([]string{secret})}
	call := &Call{Route: route}

	head, body, err := call.HTTPAnswer(t.Context(), Answer{Status: 200, Header: http.Header{
		"X-" + secret: {"a"}, "X-Value": {"a", "Bearer " + secret}}, Body: []byte(secret)}, nil)
	require.NoError(t, err)
	assert.NotContains(t, strings.ToLower(fmt.Sprintf("%+v %s", *head, body)), strings.ToLower(secret))
	assert.Len(t, head.Headers, 2, "a header whose name was redacted is still there")

	var bolt abi.BoltResult
	fillTexts(t, reflect.ValueOf(&bolt).Elem(), "a "+secret)
	given := fmt.Sprintf("%+v", bolt)
	require.Contains(t, given, secret)
	result, rows, err := call.BoltAnswer(t.Context(), Answer{Bolt: &bolt, Body: []byte(secret)}, nil)
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprintf("%+v %s", *result, rows), secret)
	assert.Equal(t, given, fmt.Sprintf("%+v", bolt), "the caller's answer is not changed")
}

// fillTexts sets each string, list of strings, and map with names of strings in a struct to text.
func fillTexts(t *testing.T, v reflect.Value, text string) {
	for name, field := range v.Fields() {
		switch f := field; {
		case f.Kind() == reflect.String:
			f.SetString(text)
		case f.Type() == reflect.TypeFor[[]string]():
			f.Set(reflect.ValueOf([]string{text}))
		case f.Kind() == reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
			f.SetMapIndex(reflect.ValueOf(text), reflect.New(f.Type().Elem()).Elem())
		case f.Kind() == reflect.Int64, f.Kind() == reflect.Bool:
		default:
			require.Fail(t, "a kind of field that this test does not fill: redact it, and fill it here", name.Name)
		}
	}
}
