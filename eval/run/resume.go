package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
)

// stillThere takes the inventory of a persona that an earlier process left, before anything else is done for the
// persona. A memory that lacks what the journal says it holds has another history than the pack's: its backend was
// emptied, replaced or restored from an older copy in the meantime.
//
// Errors: conflict, reason memory_lost; those of a backend that is gone. A missing or incomplete inventory, or one
// taken while work is in progress, proves nothing and is accepted.
func (p *persona) stillThere(ctx context.Context) error {
	if p.looked {
		return nil
	}
	p.looked = true
	if p.done.known == nil && p.done.native == 0 || !p.has[abi.OpInventory] {
		return nil
	}
	found, err := (&testSession{persona: p, number: p.done.last}).inventory(ctx, journal.Resumed)
	if err != nil || !certain(found.Inventory) {
		return err
	}
	lost := p.done.lost(found.Inventory)
	if lost == "" {
		return nil
	}
	return abi.NewError(abi.CodeConflict, fmt.Sprintf("the memory of persona %s is not the one that the run left: %s",
		p.id, lost)).WithReason("memory_lost").
		WithHint("put the backend's data back and resume; or remove " + p.dir + ": then the cell begins anew")
}

// certain reports whether an inventory is complete and stable.
func certain(i *abi.Inventory) bool { return i != nil && i.Complete && i.Quiescent }

// lost says what a memory lacks according to the journal; empty if nothing is certainly missing. If events were
// recorded after the last inventory, items may have been merged or dropped: then only an empty memory is certain.
func (p *personaDone) lost(now *abi.Inventory) string {
	if p.known != nil && p.since == 0 {
		var fewer []string
		for _, k := range p.known.Kinds {
			if n := count(now, k.Kind); n < k.Count {
				fewer = append(fewer, fmt.Sprintf("it had %d of kind %s, and has %d", k.Count, k.Kind, n))
			}
		}
		return strings.Join(fewer, "; ")
	}
	had := int64(p.native)
	if p.known != nil {
		had = max(had, count(p.known, ""))
	}
	if had == 0 || count(now, "") > 0 {
		return ""
	}
	return fmt.Sprintf("it had %d items, and is empty", had)
}

// count is how many items of a kind an inventory has; all kinds if kind is empty.
func count(i *abi.Inventory, kind string) (n int64) {
	for _, k := range i.Kinds {
		if kind == "" || k.Kind == kind {
			n += k.Count
		}
	}
	return n
}
