package egress

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

func TestSecretGoesOnlyIntoItsHeader(t *testing.T) {
	o := testOrigin(t, "http://h")
	o.secrets["x-api-key"] = map[string]string{"api_key": "s3cr3t-value"}
	r := &Route{RouteDecl: abi.RouteDecl{Method: http.MethodPost, Path: "/x/{id}", Headers: []string{"x-other"}},
		origin:        o,
		secretHeaders: []string{"x-api-key"}}
	placeholder := "{{secret:api_key}}"
	call, err := r.HTTP(&abi.HTTPRequest{Params: map[string]string{"id": placeholder},
		Query:   []abi.QueryParam{{Key: "q", Value: placeholder}},
		Headers: map[string]string{"X-Api-Key": "Key " + placeholder, "X-Other": placeholder}}, []byte(placeholder))
	require.NoError(t, err)
	assert.Equal(t, "Key s3cr3t-value", call.http.Header.Get("X-Api-Key"))
	assert.Equal(t, placeholder, call.http.Header.Get("X-Other"), "elsewhere it stays text")
	assert.NotContains(t, call.URL(), "s3cr3t")
}
