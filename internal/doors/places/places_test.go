package places_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/places"
)

func TestCheck(t *testing.T) {
	scope := abi.MemoryScope{RunID: "home-{project}", PersonaID: "a{b}{person}", AgentID: "{"}
	require.NoError(t, places.Check(abi.MemoryScope{RunID: "{}", PersonaID: "{3F2504E0-4F89-11D3-9A0C-0305E82C3301}"}))
	require.NoError(t, places.Check(scope, "{project}", "{person}", "{b}"))
	require.ErrorContains(t, places.Check(scope, "{project}", "{person}"),
		`user "a{b}{person}": nothing fills {b}, want one of {project}, {person}`)
	scope.RunID = "{Projekt}"
	require.ErrorContains(t, places.Check(scope, "{project}", "{person}"),
		`run "{Projekt}": nothing fills {Projekt}, did you mean "{project}"?`)
}
