// Package places knows the placeholders that agents' hooks fill in the ids of a scope.
package places

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/memhost/memhost/abi"
)

// place has no digit: a GUID in braces is an id.
var place = regexp.MustCompile(`\{[A-Za-z_-]+\}`)

// Check looks for a placeholder that nothing would fill: with a misspelt one, all projects or people would share the
// memory of that name.
//
// Errors: invalid_argument for a placeholder that is not among known.
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
