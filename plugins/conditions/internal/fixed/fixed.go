// Package fixed serves controls whose memory comes from the configuration, static_profile and oracle_ipas: nothing that
// is recorded changes it.
package fixed

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// Control is what differs between the two.
type Control struct {
	// Open reads the configuration and counts its entries: in total, and for the scope.
	Open func(c *sdk.Call) (config *abi.GuestConfig, all, ofScope int, err error)
	// Memory, Query and Observability are the provider's native memory type, query mode and pet_observability.
	Memory, Query, Observability string
	// Empty is the warning for no entries at all, Missing the warning for none in the scope.
	Empty, Missing string
	// Remains says what a reset leaves, and why.
	Remains string
}

// Health is ok if the configuration can be read: nothing else can fail.
func (f *Control) Health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	config, all, _, err := f.Open(c)
	if err != nil {
		return nil, err
	}
	h := &abi.BackendHealth{Status: abi.HealthOK, BackendName: config.Provider, ConsistencyModel: "immediate",
		NativeMemoryTypes: []string{f.Memory}, NativeQueryModes: []string{f.Query}, Isolation: "hard",
		PetObservability: f.Observability}
	if all == 0 {
		h.Warnings = []string{f.Empty}
	}
	return h, nil
}

// SetupScope has nothing to prepare. Existed reports whether the scope has entries.
func (f *Control) SetupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	config, _, ofScope, err := f.Open(c)
	if err != nil {
		return nil, err
	}
	receipt := &abi.SetupReceipt{Ready: true, Existed: sdk.Ptr(ofScope > 0),
		Trace: &abi.Trace{BackendName: config.Provider}}
	if ofScope == 0 {
		receipt.Warnings = []string{f.Missing}
	}
	return receipt, nil
}

// RecordEvent stores nothing, and its receipt says so.
func (f *Control) RecordEvent(c *sdk.Call, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	config, _, _, err := f.Open(c)
	if err != nil {
		return nil, err
	}
	return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusNotRetained, NativeIDsKind: abi.NativeIDsNone,
		StoredCount: sdk.Ptr(int64(0)), Trace: &abi.Trace{BackendName: config.Provider}}, nil
}

// ResetScope has nothing to remove: nothing was recorded.
func (f *Control) ResetScope(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	config, _, ofScope, err := f.Open(c)
	if err != nil {
		return nil, err
	}
	receipt := &abi.ResetReceipt{Status: abi.ResetDone, OldGeneration: c.Generation, NewGeneration: c.Generation + 1,
		Trace: &abi.Trace{BackendName: config.Provider}}
	if ofScope > 0 {
		receipt.Remains = []string{f.Remains}
	}
	return receipt, nil
}

// Begin starts an entry from its text, and returns a function that maps each member's name to its place: nil for an
// unknown member.
type Begin func(raw abi.Raw) (member func(name string) *string)

// Block reads {list: [entries]}. In place of the list there may be another such object: the content of a file with a
// list.
func Block(d *wirejson.Decoder, list string, begin Begin) error {
	return d.Obj(func(d *wirejson.Decoder, key string) error {
		switch {
		case key != list || d.Next() == wirejson.Null:
			return d.Skip()
		case d.Next() == wirejson.Object:
			return Block(d, list, begin)
		}
		return Entries(d, begin)
	})
}

// Entries reads a list of entries.
func Entries(d *wirejson.Decoder, begin Begin) error {
	return d.Arr(func(d *wirejson.Decoder) error { return Entry(d, begin) })
}

// Entry reads one entry.
func Entry(d *wirejson.Decoder, begin Begin) error {
	d.Next() // positions the decoder at the value
	raw, err := d.Raw()
	if err != nil {
		return err
	}
	member := begin(abi.Raw(raw))
	return wirejson.DecodeBytes(raw).Obj(func(d *wirejson.Decoder, key string) error {
		to := member(key)
		if to == nil || d.Next() == wirejson.Null {
			return d.Skip()
		}
		*to, err = d.Str()
		return err
	})
}
