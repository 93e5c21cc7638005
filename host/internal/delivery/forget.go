package delivery

import (
	"context"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// forgetText adds to a batch that an entry loses the digest of its event's text.
func forgetText(b *state.Batch, space state.Space, id string, e *Entry) {
	e.Hash = Hash{}
	b.PutRecord(TableEntries, Key(space, id), e.Encode())
}

// Forget adds to a batch that the ledger forgets an event: the whole entry if the provider has removed the event (done),
// otherwise the digest of its text, since the entry is needed to find what the provider still has. unseen reports that
// the provider is done, but may have received or processed the event only afterwards.
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

// ForgetByNativeIDs drops events of which the provider has removed every native id (by kind). So it finds the events of a
// request that names a session or a time.
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

// WithSession adds to ids the events of the request's session, if it names one. unsure reports that the ledger has events
// whose session it does not know.
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

// ForgetTexts takes the digests of events out of the ledger of a scope whose provider is not asked. had reports whether
// the ledger has one of the events. For a range of time, and if sessions are not known, it reports whether the ledger has
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
