package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
)

// BackfillPlan says what Backfill would deliver, without sending anything: the module is loaded, and its backend is not
// asked.
//
// Errors: those of loading a module, unsupported with reason archive_off.
func (s *Slot) BackfillPlan(ctx context.Context, config ProviderConfig) (*abi.BackfillPlan, error) {
	h := s.host
	if err := s.canFollow(); err != nil {
		return nil, errBackfill(err)
	}
	if !h.archive.On {
		return nil, refuseBackfill(abi.CodeUnsupported, "archive_off", "the slot keeps no archive to fill from",
			"set memory.archive: true; what was recorded before is not in it")
	}
	p, err := h.loadProvider(ctx, config)
	if err != nil {
		return nil, errBackfill(err)
	}
	defer func() { _ = p.close(context.WithoutCancel(ctx)) }()
	plan := &abi.BackfillPlan{Provider: p.name, ConditionKind: p.kind, Tokenizer: p.tokens.Name(), Notes: p.costNotes()}
	after, key := int64(0), p.followerKey()
	record, err := h.followRecordOf(ctx, key)
	if err != nil {
		return nil, errBackfill(err)
	}
	if record != nil {
		after = record.Position
		plan.Notes = append(plan.Notes, fmt.Sprintf("%d events were delivered before", record.Done))
	}
	if f := s.followerWith(key); f != nil {
		after = f.position()
	}
	erasures, err := h.archive.Erasures(ctx)
	if err != nil {
		return nil, errBackfill(err)
	}
	scopes := map[abi.MemoryScope]bool{}
	err = h.archive.EachAfter(ctx, after, func(entry *archive.Entry, event *abi.MemoryEvent) error {
		forgotten, err := h.wasForgotten(ctx, event)
		if err != nil {
			return err
		}
		if forgotten || p.testSession(event.SessionID) || archive.WasErased(erasures, entry.Seq, event) {
			plan.LeftOut++
			return nil
		}
		plan.Events++
		scopes[p.memoryScopeOf(event)] = true
		for i := range event.Messages {
			if text := event.Messages[i].Content; text != nil {
				plan.Tokens += p.tokens.Count([]byte(*text))
			}
		}
		if plan.Oldest == "" {
			plan.Oldest = event.Timestamp
		}
		plan.Newest = event.Timestamp
		return nil
	})
	if err != nil {
		return nil, errBackfill(err)
	}
	plan.Scopes = int64(len(scopes))
	if p.writesNatively() {
		plan.NativeCalls = plan.Events
	}
	return plan, nil
}

// writesNatively reports whether the module has a route that writes.
func (p *Provider) writesNatively() bool {
	return slices.ContainsFunc(p.module.Manifest.Routes, func(r abi.RouteDecl) bool { return r.Class == abi.ClassWrite })
}

// costNotes say what the module's manifest leaves open of the cost of an event.
func (p *Provider) costNotes() []string {
	switch {
	case len(p.module.Manifest.Origins) == 0:
		return []string{"the module works by itself: no native call, and no call to a model"}
	case p.writesNatively():
		return []string{"native_calls counts one native write for each event, which is the least; what the backend does " +
			"with it, calls to models included, is not known here"}
	}
	var names []string
	for _, r := range p.module.Manifest.Routes {
		names = append(names, r.Name)
	}
	return []string{"the module may ask a model while events are delivered or worked off, by its routes " +
		strings.Join(names, ", ") + ": how often depends on its configuration"}
}
