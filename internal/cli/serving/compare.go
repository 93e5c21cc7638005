package serving

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

const (
	// mostCompared is the most events with which a memory is filled for a comparison.
	mostCompared = 5000
	// comparedBatch is how many of them are recorded in one call.
	comparedBatch = 100
	// compareWithin bounds a comparison.
	compareWithin = 2 * time.Minute
)

// comparer handles POST /v1/compare. It asks a shadow as it is. It fills other memories with a scope's archive, each in
// a folder that is removed afterwards; they have no configuration, and so no address to call.
type comparer struct {
	*commands
	config    *config.Config
	slot      *host.Slot
	archive   host.Archive
	maxEvents int        // events with which a memory is filled
	busy      sync.Mutex // held by the comparison that is running
}

// Compare implements server.Options.Compare.
//
// Errors: rate_limited while another comparison runs, unsupported without an archive, timeout.
func (c *comparer) Compare(ctx context.Context, q *wire.CompareRequest) (*wire.Comparison, error) {
	if !c.busy.TryLock() {
		return nil, abi.NewError(abi.CodeRateLimited, "another comparison is running").
			WithHint("ask again once it has ended")
	}
	defer c.busy.Unlock()
	ctx, cancel := context.WithTimeout(ctx, compareWithin)
	defer cancel()
	retrieve := &abi.RetrieveRequest{Query: q.Query, Scope: q.Scope, SessionID: "page"}
	retrieve.Budget.MaxTokens = &q.MaxTokens
	answer := &wire.Comparison{Answers: []wire.ComparedAnswer{}}
	var events []abi.MemoryEvent
	read := false
	for _, name := range q.Providers {
		a := wire.ComparedAnswer{Provider: name, Shadow: c.slot.HasShadow(name)}
		if !a.Shadow && !read {
			var leftOut int
			var err error
			if events, leftOut, err = c.events(ctx, q.Scope); err != nil {
				return nil, err
			}
			read, answer.Events, answer.LeftOut = true, int64(len(events)), int64(leftOut)
		}
		if err := c.ask(ctx, retrieve, events, &a); err != nil {
			if ctx.Err() != nil {
				return nil, abi.WrapError(abi.CodeTimeout, "the comparison did not end within "+compareWithin.String(), err)
			}
			a.Error = abi.AsError(err)
		}
		answer.Answers = append(answer.Answers, a)
	}
	return answer, nil
}

// events reads the newest events of a scope from the archive, oldest first. leftOut counts the others.
func (c *comparer) events(ctx context.Context, scope abi.MemoryScope) (events []abi.MemoryEvent, leftOut int, err error) {
	var listed []report.ListedEvent
	for q := (report.EventQuery{Scope: scope, Limit: report.MaxPage}); ; {
		page, err := c.slot.ListEvents(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		listed = append(listed, page.Events...)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	slices.SortStableFunc(listed, func(a, b report.ListedEvent) int { return strings.Compare(a.SentAt, b.SentAt) })
	wanted := map[string]bool{}
	for _, l := range listed[max(0, len(listed)-c.maxEvents):] {
		wanted[l.EventID] = true
	}
	for q := (&report.ArchiveRequest{Scope: &scope}); len(wanted) > 0; {
		page, err := c.archive.ArchivePage(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		for _, e := range page.Events {
			if wanted[e.EventID] {
				delete(wanted, e.EventID) // the archive may have it twice
				events = append(events, e)
			}
		}
		if q.After = page.Last; !page.More {
			break
		}
	}
	at := func(e abi.MemoryEvent) time.Time {
		t, _ := abi.ParseTime(e.Timestamp) // it was checked when the event was recorded
		return t
	}
	slices.SortStableFunc(events, func(a, b abi.MemoryEvent) int { return at(a).Compare(at(b)) })
	return events, len(listed) - len(events), nil
}

// ask asks one memory: a shadow as it is, another one after it was filled, and then it is removed.
func (c *comparer) ask(ctx context.Context, q *abi.RetrieveRequest, events []abi.MemoryEvent,
	a *wire.ComparedAnswer) (err error) {
	if a.Shadow {
		result, err := c.slot.AskShadow(ctx, a.Provider, q)
		if err == nil {
			a.Take(result)
		}
		return err
	}
	all := c.Builtins() // a request must not make this process fetch a module
	i := slices.IndexFunc(all, func(m *cli.Module) bool { return m.Serves(a.Provider) != nil })
	if i < 0 {
		return abi.NewError(abi.CodeNotFound, "no built-in memory has this name").WithHint("`memhost providers` lists them")
	}
	m := all[i]
	if !runsAlone(m) {
		return abi.NewError(abi.CodeUnsupported, a.Provider+" needs a server or a model").
			WithHint("a shadow compares it with what serves: docs/move.md")
	}
	dir, err := os.MkdirTemp("", "memhost-compare-")
	if err != nil {
		return err
	}
	o := c.HostOptions(c.config, hclog.NewNullLogger())
	o.DataDir, o.OpenStore, o.Archive = dir, nil, false
	h, err := host.New(ctx, o)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	defer func() {
		err = errors.Join(err, h.Close(context.WithoutCancel(ctx)), os.RemoveAll(dir))
	}()
	slot, err := h.Open(ctx, host.ProviderConfig{Name: a.Provider, Module: m.Wasm, Block: abi.Raw(`{}`),
		Smoke: host.SmokeNever})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, slot.Close(context.WithoutCancel(ctx))) }()
	began := time.Now()
	for batch := range slices.Chunk(events, comparedBatch) {
		receipts, err := slot.RecordEvents(ctx, &abi.EventBatch{Events: batch})
		if err != nil {
			return err
		}
		for _, r := range receipts.Receipts {
			if r.Error != nil { // an answer from a part of the conversation would not be comparable
				return r.Error
			}
		}
	}
	a.FillMS = float64(time.Since(began).Microseconds()) / 1000
	result, err := slot.Retrieve(ctx, q)
	if err == nil {
		a.Take(result)
	}
	return err
}

// runsAlone reports whether a module without configuration has nothing to call: it declares no fixed address, and each
// address that its configuration may give belongs to an optional key without a default.
func runsAlone(m *cli.Module) bool {
	var schema struct {
		Required   []string `json:"required"`
		Properties map[string]struct {
			Default json.RawMessage `json:"default"`
		} `json:"properties"`
	}
	if len(m.Info.Manifest.ConfigSchema) > 0 && json.Unmarshal(m.Info.Manifest.ConfigSchema, &schema) != nil {
		return false
	}
	return !slices.ContainsFunc(m.Info.Manifest.Origins, func(o abi.OriginDecl) bool {
		key, _, _ := strings.Cut(strings.TrimPrefix(o.From, "/"), "/")
		return key == "" || slices.Contains(schema.Required, key) || schema.Properties[key].Default != nil
	})
}
