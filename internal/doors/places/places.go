// Package places knows the placeholders that agents' hooks fill in the ids of a scope.
package places

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/memhost/memhost/abi"
)

// place matches a placeholder. It has no digits, because a GUID in braces is an id.
var place = regexp.MustCompile(`\{[A-Za-z_-]+\}`)

// Check looks for a placeholder that would not be replaced: a misspelt one would put all projects or people into one
// memory with that name.
//
// Errors: invalid_argument for a placeholder that is not in known.
func Check(scope abi.MemoryScope, known ...string) error {
	for _, id := range []struct{ name, value string }{{"run", scope.RunID}, {"user", scope.PersonaID},
		{"agent", scope.AgentID}} {
		for _, found := range place.FindAllString(id.value, -1) {
			if !slices.Contains(known, found) {
				return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%s %q: nothing fills %s%s", id.name, id.value,
					found, abi.Suggest(found, known)))
			}
		}
	}
	return nil
}
