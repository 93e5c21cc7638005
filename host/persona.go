package host

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// tableProviders holds the last configuration of each provider that has served or followed: digestOf(name, origins,
// namespace) -> KeptProvider. Its block has no credentials.
const tableProviders state.Table = "providers"

// KeptProvider is the last configuration of a provider that serves or follows, or did, with the data folder. It names
// its secrets, and holds none.
type KeptProvider struct {
	Name      string      `json:"name"`
	Word      string      `json:"word"`
	Source    string      `json:"source"` // of the module: "builtin", a path or oci://...
	SHA256    string      `json:"sha256"` // of the module
	Block     abi.Raw     `json:"block"`
	Profile   abi.Profile `json:"profile,omitempty"`
	Namespace string      `json:"namespace,omitempty"`
	Since     string      `json:"since"`
}

func providerKey(name, origin, namespace string) []byte {
	key := digestOf(name, origin, namespace)
	return key[:]
}

// keepProvider notes the configuration of a provider that begins to serve, or to follow. A cassette has it already.
func (h *Host) keepProvider(ctx context.Context, p *Provider) error {
	if h.tape != nil {
		return nil
	}
	value, err := json.Marshal(&KeptProvider{Name: p.name, Word: p.word, Source: p.config.Source,
		SHA256: p.module.SHA256, Block: p.shownConfig(), Profile: p.config.Profile, Namespace: p.config.Namespace,
		Since: h.stamp()})
	if err != nil {
		return err
	}
	var b state.Batch
	b.PutRecord(tableProviders, providerKey(p.name, p.originKey, p.config.Namespace), value)
	return h.commit(ctx, &b)
}

// ErasePersona erases all that is held of a person. The host's own part comes first: what happened until now is not
// recorded again, with any provider; the archive and what waits for a backfill lose the person's events, and the stored
// answers of shadows go. Then every scope that the data folder knows of the person is reset, all at the same time and
// within half a minute: by the provider that serves, by one that follows, or by one that served before, which find
// makes ready again from its last configuration.
//
// What cannot be erased is named in the receipt, with the reason; asked again it goes on.
//
// Errors: read_only behind the slot's wall, before anything is done; those of the data folder.
func (s *Slot) ErasePersona(ctx context.Context, r *abi.PersonaRequest, find func(context.Context,
	*KeptProvider) (ProviderConfig, error)) (_ *abi.PersonaReceipt, err error) {
	defer func() { s.host.decided(ctx, asked{"erase_persona", r}, err) }()
	if err := r.Validate(); err != nil {
		return nil, err
	}
	mode, err := s.Mode(ctx)
	if err != nil {
		return nil, err
	}
	if mode.ReadOnly {
		return nil, s.refusal("nothing is erased, and no native call was made")
	}
	h := s.host
	if err := h.notePerson(ctx, r); err != nil {
		return nil, err
	}
	x := &personErasure{slot: s, request: r, find: find,
		receipt: &abi.PersonaReceipt{Status: abi.ForgetDone, Scopes: []abi.ErasedScope{}, MayRemain: []string{}}}
	defer x.close(ctx)
	scopes, err := h.scopesOfPerson(ctx, r)
	if err != nil {
		return nil, err
	}
	x.eraseOwn(ctx, scopes)
	x.eraseScopes(ctx, scopes)
	outside, left := h.scrub(ctx)
	x.receipt.Outside = outside
	if left != "" {
		x.remains("%s", left)
	}
	return x.receipt, nil
}

// eraseOwn removes what the host itself holds of the person.
func (x *personErasure) eraseOwn(ctx context.Context, scopes []scopeRecord) {
	h, r := x.slot.host, x.request
	gone, err := h.forgetKept(ctx, func(e *abi.MemoryEvent) bool {
		return e.UserID == r.PersonaID && (r.RunID == "" || e.RunID == r.RunID)
	}, nil)
	x.receipt.ArchivedEvents = int64(len(gone))
	if err != nil {
		x.remains("the archive: %s", err)
	}
	runs := map[string]bool{}
	for i := range scopes {
		runs[scopes[i].RunID] = true
	}
	for run := range runs {
		err := h.follow.ForgetAnswers(ctx, abi.MemoryScope{RunID: run, PersonaID: r.PersonaID})
		if err != nil {
			x.remains("stored answers of shadows: %s", err)
		}
	}
}

// notePerson keeps that all of a person's events until now are forgotten.
func (h *Host) notePerson(ctx context.Context, r *abi.PersonaRequest) error {
	value, err := json.Marshal(&forgottenRule{At: h.stamp(), All: true})
	if err != nil {
		return err
	}
	var b state.Batch
	b.PutRecord(tableForgotten, append(append(person(r.RunID, r.PersonaID), forgottenRules), "all"...), value)
	h.noteForgetful(&b)
	return h.commit(ctx, &b)
}

// scopesOfPerson are the scopes of a person that the data folder knows.
func (h *Host) scopesOfPerson(ctx context.Context, r *abi.PersonaRequest) (list []scopeRecord, err error) {
	err = h.eachRecord(ctx, tableScopes, nil, func(kv state.KeyValue) error {
		var record scopeRecord
		if json.Unmarshal(kv.Value, &record) != nil {
			return abi.NewError(abi.CodeUnavailable, "state: the record of a scope is damaged").WithReason("state")
		}
		if record.PersonaID == r.PersonaID && (r.RunID == "" || record.RunID == r.RunID) {
			list = append(list, record)
		}
		return nil
	})
	return list, err
}

// personErasure erases one person.
type personErasure struct {
	slot    *Slot
	request *abi.PersonaRequest
	find    func(context.Context, *KeptProvider) (ProviderConfig, error)
	receipt *abi.PersonaReceipt

	mu     sync.Mutex
	opened []*Slot // with providers that do not serve
}

// remains notes what is left, and why.
func (x *personErasure) remains(format string, about ...any) {
	x.receipt.MayRemain = append(x.receipt.MayRemain, fmt.Sprintf(format, about...))
	x.receipt.Status = abi.ForgetPartial
}

// scopesAtOnce is how many scopes of one provider are reset at the same time.
const scopesAtOnce = 4

// eraseScopes resets scopes and adds the outcomes to the receipt, in order. No provider waits for another one.
func (x *personErasure) eraseScopes(ctx context.Context, scopes []scopeRecord) {
	within, cancel := context.WithTimeout(ctx, x.slot.host.eraseWithin)
	defer cancel()
	owned := map[string][]int{} // by provider, and whether memories are kept for each agent
	for i := range scopes {
		r := &scopes[i]
		key := fmt.Sprint(string(providerKey(r.Provider, r.Origin, r.Namespace)), r.AgentID != "")
		owned[key] = append(owned[key], i)
	}
	outcomes := make([]abi.ErasedScope, len(scopes))
	var all sync.WaitGroup
	for _, list := range owned {
		all.Go(func() {
			slot, serving, err := x.slotOf(within, &scopes[list[0]])
			var some sync.WaitGroup
			free := make(chan struct{}, scopesAtOnce)
			for _, i := range list {
				free <- struct{}{}
				some.Go(func() {
					outcomes[i] = eraseScope(within, slot, &scopes[i], err)
					outcomes[i].Serving = serving
					<-free
				})
			}
			some.Wait()
		})
	}
	all.Wait()
	for i := range outcomes {
		x.add(&outcomes[i])
	}
}

// eraseScope resets a scope. failed is why its provider could not be made ready.
func eraseScope(ctx context.Context, slot *Slot, record *scopeRecord, failed error) abi.ErasedScope {
	out := abi.ErasedScope{Provider: record.Provider, BackendNamespace: record.Namespace, RunID: record.RunID,
		AgentID: record.AgentID, Status: abi.ResetFailed, Removed: map[string]*int64{}, Remains: []string{}}
	var receipt *abi.ResetReceipt
	if failed == nil {
		receipt, failed = slot.resetIn(ctx, record.memoryScope(), false)
	}
	if failed != nil {
		out.Remains = append(out.Remains, "all of it: "+abi.AsError(failed).Error())
		return out
	}
	out.Status, out.Removed, out.Remains = receipt.Status, receipt.Removed, receipt.Remains
	return out
}

// add adds the outcome of a scope to the receipt.
func (x *personErasure) add(out *abi.ErasedScope) {
	where := fmt.Sprintf("provider %s, run %q", out.Provider, out.RunID)
	if out.BackendNamespace != "" {
		where += fmt.Sprintf(", namespace %q", out.BackendNamespace)
	}
	if out.AgentID != "" {
		where += fmt.Sprintf(", agent %q", out.AgentID)
	}
	for _, what := range out.Remains {
		x.receipt.MayRemain = append(x.receipt.MayRemain, where+": "+what)
	}
	switch {
	case out.Status == abi.ResetInProgress && x.receipt.Status == abi.ForgetDone:
		x.receipt.Status = abi.ForgetInProgress
	case out.Status != abi.ResetDone && out.Status != abi.ResetInProgress:
		x.receipt.Status = abi.ForgetPartial
	}
	x.receipt.Scopes = append(x.receipt.Scopes, *out)
}

// slotOf is a slot whose provider has a scope: the one that serves, a follower's, or one opened for it.
func (x *personErasure) slotOf(ctx context.Context, record *scopeRecord) (_ *Slot, serving bool, err error) {
	if v := x.slot.current.Load(); v != nil && v.provider.owns(record) &&
		(record.AgentID == "" || v.provider.config.AgentScoped) {
		return x.slot, true, nil
	}
	for _, f := range x.slot.followers.list() {
		if p := f.provider(); p != nil && p.owns(record) && (record.AgentID == "" || p.config.AgentScoped) {
			return f.inner, false, nil
		}
	}
	slot, err := x.open(ctx, providerKey(record.Provider, record.Origin, record.Namespace), record)
	if err == nil {
		x.mu.Lock()
		x.opened = append(x.opened, slot)
		x.mu.Unlock()
	}
	return slot, false, err
}

// open opens a provider that does not serve.
func (x *personErasure) open(ctx context.Context, key []byte, record *scopeRecord) (*Slot, error) {
	h := x.slot.host
	stored, err := h.store.Record(ctx, tableProviders, key)
	if err != nil {
		return nil, stateError(err)
	}
	kept := new(KeptProvider)
	if stored == nil || json.Unmarshal(stored, kept) != nil {
		return nil, abi.NewError(abi.CodeNotFound, "the configuration that the provider had is not kept").
			WithHint("let it serve again (memhost swap), and ask again")
	}
	config, err := x.find(ctx, kept)
	if err != nil {
		return nil, err
	}
	config.Namespace, config.AgentScoped = kept.Namespace, record.AgentID != ""
	config.Scope, config.Smoke = nil, SmokeNever
	slot := h.newSlot()
	slot.wall = x.slot.wall
	p, health, err := slot.prepare(ctx, config, new(stepLog)) // it does not serve, and does no work of its own accord
	if err != nil {
		return nil, err
	}
	slot.current.Store(&serving{provider: p, capabilities: p.capabilities(health)})
	if !p.owns(record) {
		_ = slot.Close(context.WithoutCancel(ctx))
		return nil, abi.NewError(abi.CodeConflict, "the provider's last configuration leads to another backend")
	}
	return slot, nil
}

// close closes what was opened.
func (x *personErasure) close(ctx context.Context) {
	for _, slot := range x.opened {
		if err := slot.Close(context.WithoutCancel(ctx)); err != nil {
			x.slot.host.logger.Warn("closing a provider that was opened to erase", "error", err)
		}
	}
}
