package host

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
)

// tableProviders holds the last configuration of each provider that has served or followed: digestOf(name, origins,
// namespace) -> StoredProvider. The config block has no credentials.
const tableProviders state.Table = "providers"

// StoredProvider is the last configuration of a provider that serves or follows with this data folder, or once did. It
// has the names of the secrets, not their values.
type StoredProvider struct {
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

// keepProvider stores the configuration of a provider that starts to serve or to follow. A replay skips this, because
// the cassette has it.
func (h *Host) keepProvider(ctx context.Context, p *Provider) error {
	if h.tape != nil {
		return nil
	}
	value, err := json.Marshal(&StoredProvider{Name: p.name, Word: p.word, Source: p.config.Source,
		SHA256: p.module.SHA256, Block: p.shownConfig(), Profile: p.config.Profile, Namespace: p.config.Namespace,
		Since: h.stamp()})
	if err != nil {
		return err
	}
	var b state.Batch
	b.PutRecord(tableProviders, providerKey(p.name, p.originKey, p.config.Namespace), value)
	return h.commit(ctx, &b)
}

// ErasePersona erases everything that is held about a person. The host's own data comes first: events until now will
// not be recorded again with any provider; the archive and the queue of a backfill lose the person's events; the stored
// answers of shadows are deleted. Then every scope of the person that the data folder knows is reset, concurrently and
// within half a minute: by the provider that serves, by a follower, or by a provider that served before, for which find
// returns a usable configuration.
//
// The receipt names what could not be erased, with the reason. Repeating the request continues.
//
// Errors: read_only if the slot is read-only, before anything is done; those of the data folder.
func (s *Slot) ErasePersona(ctx context.Context, r *report.PersonaRequest, find func(context.Context,
	*StoredProvider) (ProviderConfig, error)) (_ *report.PersonaReceipt, err error) {
	defer func() { s.host.recordDecision(ctx, contractCall{"erase_persona", r}, err) }()
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
		receipt: &report.PersonaReceipt{Status: abi.ForgetDone, Scopes: []report.ErasedScope{}, MayRemain: []string{}}}
	defer x.close(ctx)
	scopes, err := h.scopesOfPerson(ctx, r)
	if err != nil {
		return nil, err
	}
	for i := range scopes {
		done, err := h.erasingCopies(ctx, scopes[i].memoryScope())
		if err != nil {
			return nil, err
		}
		defer done()
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

// eraseOwn removes what the host itself holds about the person.
func (x *personErasure) eraseOwn(ctx context.Context, scopes []scopeRecord) {
	h, r := x.slot.host, x.request
	gone, err := h.forgetStored(ctx, r.PersonaID, func(e *abi.MemoryEvent) bool {
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

// notePerson records that all of a person's events until now are forgotten.
func (h *Host) notePerson(ctx context.Context, r *report.PersonaRequest) error {
	value, err := json.Marshal(&forgottenRule{At: h.stamp(), All: true})
	if err != nil {
		return err
	}
	var b state.Batch
	b.PutRecord(tableForgotten, append(append(person(r.RunID, r.PersonaID), forgottenRules), "all"...), value)
	h.noteForgetful(&b)
	return h.commit(ctx, &b)
}

// scopesOfPerson returns the scopes of a person that the data folder knows.
func (h *Host) scopesOfPerson(ctx context.Context, r *report.PersonaRequest) (list []scopeRecord, err error) {
	mayBe := scopeOfPerson(r.PersonaID)
	err = h.eachRecord(ctx, tableScopes, nil, func(kv state.KeyValue) error {
		var record scopeRecord
		if !mayBe(kv.Value) {
			return nil
		}
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

// personErasure is one run of ErasePersona.
type personErasure struct {
	slot    *Slot
	request *report.PersonaRequest
	find    func(context.Context, *StoredProvider) (ProviderConfig, error)
	receipt *report.PersonaReceipt

	mu     sync.Mutex
	opened []*Slot // slots of providers that do not serve, opened for this run
}

// remains records what is left, and why.
func (x *personErasure) remains(format string, about ...any) {
	x.receipt.MayRemain = append(x.receipt.MayRemain, fmt.Sprintf(format, about...))
	x.receipt.Status = abi.ForgetPartial
}

// scopesAtOnce is how many scopes of one provider are reset concurrently.
const scopesAtOnce = 4

// eraseScopes resets scopes and adds the outcomes to the receipt, in order. Providers do not wait for each other.
func (x *personErasure) eraseScopes(ctx context.Context, scopes []scopeRecord) {
	within, cancel := context.WithTimeout(ctx, x.slot.host.eraseWithin)
	defer cancel()
	owned := map[string][]int{} // by provider, and whether memories are separate for each agent
	for i := range scopes {
		r := &scopes[i]
		key := fmt.Sprint(string(providerKey(r.Provider, r.Origin, r.Namespace)), r.AgentID != "")
		owned[key] = append(owned[key], i)
	}
	outcomes := make([]report.ErasedScope, len(scopes))
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

// eraseScope resets a scope. failed, if not nil, is why its provider could not be loaded.
func eraseScope(ctx context.Context, slot *Slot, record *scopeRecord, failed error) report.ErasedScope {
	out := report.ErasedScope{Provider: record.Provider, BackendNamespace: record.Namespace, RunID: record.RunID,
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
func (x *personErasure) add(out *report.ErasedScope) {
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

// slotOf returns a slot whose provider has a scope: the serving one, a follower's, or one opened for this purpose.
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

// open loads a provider that does not serve.
func (x *personErasure) open(ctx context.Context, key []byte, record *scopeRecord) (*Slot, error) {
	h := x.slot.host
	stored, err := h.store.Record(ctx, tableProviders, key)
	if err != nil {
		return nil, stateError(err)
	}
	last := new(StoredProvider)
	if stored == nil || json.Unmarshal(stored, last) != nil {
		return nil, abi.NewError(abi.CodeNotFound, "the configuration that the provider had is not kept").
			WithHint("let it serve again (memhost swap), and ask again")
	}
	config, err := x.find(ctx, last)
	if err != nil {
		return nil, err
	}
	config.Namespace, config.AgentScoped = last.Namespace, record.AgentID != ""
	config.Scope, config.Smoke = nil, SmokeNever
	slot := h.newSlot()
	slot.wall = x.slot.wall
	p, health, err := slot.prepare(ctx, config, new(stepLog)) // it does not serve, and has no background work
	if err != nil {
		return nil, err
	}
	slot.current.Store(&servingProvider{provider: p, capabilities: p.capabilities(health)})
	if !p.owns(record) {
		_ = slot.Close(context.WithoutCancel(ctx))
		return nil, abi.NewError(abi.CodeConflict, "the provider's last configuration leads to another backend")
	}
	return slot, nil
}

// close closes the slots that were opened.
func (x *personErasure) close(ctx context.Context) {
	for _, slot := range x.opened {
		if err := slot.Close(context.WithoutCancel(ctx)); err != nil {
			x.slot.host.logger.Warn("closing a provider that was opened to erase", "error", err)
		}
	}
}
