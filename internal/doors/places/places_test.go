package places_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/places"
)

func TestCheck(t *testing.T) {
	scope := abi.MemoryScope{RunID: "home-{project}", PersonaID: "a{b}{person}", AgentID: "{"}
	require.NoError(t, places.Check(scope, "{project}", "{person}", "{b}"))
	require.ErrorContains(t, places.Check(scope, "{project}", "{person}"),
		`user "a{b}{person}": nothing fills {b}, want one of {project}, {person}`)
	scope.RunID = "{Projekt}"
	require.ErrorContains(t, places.Check(scope, "{project}", "{person}"),
		`run "{Projekt}": nothing fills {Projekt}, did you mean "{project}"?`)
}
