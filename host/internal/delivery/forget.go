package delivery

import (
	"context"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// forgetText removes the digest of an event's text from its entry, in a batch.
func forgetText(b *state.Batch, space state.Space, id string, e *Entry) {
	e.Hash = Hash{}
	b.PutRecord(TableEntries, Key(space, id), e.Encode())
}

// Forget removes an event from the ledger, in a batch: the whole entry if the provider has removed the event (done),
// otherwise only the digest of its text, because the entry is needed to find what the provider still has. unseen
// reports that the provider is done, but may receive or process the event later.
func (l *Ledger) Forget(ctx context.Context, b *state.Batch, space state.Space, id string, done bool) (unseen bool,
	err error) {
	known, err := l.Entry(ctx, space, id)
	if err != nil || known == nil {
		return false, err
	}
	unseen = done && known.Unseen()
	if done && !unseen {
		Drop(b, space, id)
		return false, nil
	}
	forgetText(b, space, id, known)
	return unseen, nil
}

// ForgetByNativeIDs drops events of which the provider has removed every native id (by kind). This finds the events of
// a request that names a session or a time.
func (l *Ledger) ForgetByNativeIDs(ctx context.Context, b *state.Batch, space state.Space,
	removed map[string][]string) error {
	isRemoved := map[string]bool{}
	for _, ids := range removed {
		for _, id := range ids {
			isRemoved[id] = true
		}
	}
	return l.Each(ctx, space, func(eventID string, e *Entry) error {
		if e.Receipt == nil || len(e.Receipt.NativeIDs) == 0 {
			return nil
		}
		if !slices.ContainsFunc(e.Receipt.NativeIDs, func(id string) bool { return !isRemoved[id] }) {
			Drop(b, space, eventID)
		}
		return nil
	})
}

// WithSession adds the events of the request's session, if it names one, to ids. unsure reports that the ledger has
// events whose session it does not know.
func (l *Ledger) WithSession(ctx context.Context, space state.Space, r *abi.ForgetRequest, ids []string) (all []string,
	unsure bool, err error) {
	if r.SessionID == "" {
		return ids, false, nil
	}
	all = slices.Clone(ids)
	err = l.Each(ctx, space, func(id string, e *Entry) error {
		if e.Session == r.SessionID && !slices.Contains(ids, id) {
			all = append(all, id)
		}
		unsure = unsure || e.Session == ""
		return nil
	})
	return all, unsure, err
}

// ForgetTexts removes the digests of events from the ledger of a scope whose provider is not asked. had reports whether
// the ledger has any of the events. For a time range, or if sessions are not known, it reports whether the ledger has
// any event.
func (l *Ledger) ForgetTexts(ctx context.Context, b *state.Batch, space state.Space, r *abi.ForgetRequest,
	ids []string) (had bool, err error) {
	ids, unsure, err := l.WithSession(ctx, space, r, ids)
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		known, err := l.Entry(ctx, space, id)
		if err != nil {
			return false, err
		}
		if known == nil {
			continue
		}
		had = true
		forgetText(b, space, id, known)
	}
	if had || r.From == "" {
		return had || unsure, nil
	}
	return l.HasEvents(ctx, space)
}
