package host

import (
	"slices"

	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
)

// StaysBehind reports whether a table stays where it is when a slot moves from a data folder to a database or back:
// what hosts of one database agree on, and what belongs to the folder (the archive, and memories that follow).
func StaysBehind(t state.Table) bool {
	return slices.Contains([]state.Table{fleet.TableTurns, tableShared, tableModules, tableLate, tableFollow,
		tableFollowOpen, tableShadow}, t) || slices.Contains(archive.Tables(), t)
}
