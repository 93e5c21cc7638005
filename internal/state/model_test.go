package state_test

import (
	"testing"

	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/statetest"
)

func TestStoreAgreesWithModel(t *testing.T) {
	statetest.AgreesWithModel(t, func() (state.Store, func() (state.Store, error), error) {
		dir := t.TempDir()
		open := func() (state.Store, error) {
			return state.Open(dir, state.Options{Durability: state.DurabilityProcess})
		}
		s, err := open()
		return s, open, err
	})
}
