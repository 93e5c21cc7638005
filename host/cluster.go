package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http/httptrace"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/host/internal/follow"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
)

// Cluster reports what the hosts of the slot agree on. It does not contact the backend.
func (s *Slot) Cluster(ctx context.Context) (*report.Cluster, error) {
	h := s.host
	if h.fleet.Shared() {
		return readCluster(ctx, h.store, h.fleet)
	}
	v, err := s.take("cluster")
	if err != nil {
		return nil, err
	}
	defer v.provider.release()
	mode, err := s.Mode(ctx)
	if err != nil {
		return nil, err
	}
	version, _ := h.version()
	return &report.Cluster{Store: storeFile, LateWrites: []report.LateWrite{}, ReadOnly: mode.ReadOnly, Turns: mode.InFlight,
		Hosts:    []report.ClusterHost{{Name: ThisHost(), Version: version, Began: stampOf(h.began), Self: true}},
		Provider: v.provider.name, Module: v.provider.module.SHA256, Generation: v.manifest.LoadGeneration,
		ServingSince: v.manifest.ServingSince}, nil
}

// The values of report.Cluster.Store.
const (
	storeFile     = "file"
	storePostgres = "postgres"
)

// ReadCluster reads what the hosts that share a store agree on. It needs no session.
func ReadCluster(ctx context.Context, store state.Store, sessions fleet.Sessions) (*report.Cluster, error) {
	f := fleet.New(store, sessions)
	defer f.Close()
	return readCluster(ctx, store, f)
}

func readCluster(ctx context.Context, store state.Store, f *fleet.Fleet) (*report.Cluster, error) {
	c := &report.Cluster{Store: storePostgres, Hosts: []report.ClusterHost{}}
	hosts, self, err := f.Hosts(ctx)
	if err != nil {
		return nil, stateError(err)
	}
	for _, h := range hosts {
		left := h.Left.Milliseconds()
		c.Hosts = append(c.Hosts, report.ClusterHost{Name: hostName(h.Name, h.PID), Version: h.Version,
			Began: stampOf(h.Began), LeftMS: &left, Self: h.Session == self})
	}
	values, err := f.Read(ctx, factsOf(nil)...)
	if err != nil {
		return nil, stateError(err)
	}
	mode, err := parseMode(values[factMode])
	if err != nil {
		return nil, err
	}
	c.ReadOnly = mode.ReadOnly
	if stored := values[factServing]; stored != nil {
		served, err := parseServed(stored)
		if err != nil {
			return nil, err
		}
		c.Provider, c.Module, c.Generation, c.ServingSince = served.Name, served.SHA256, served.Generation, served.Since
	}
	if c.LateWrites, err = readLateWrites(ctx, store); err != nil {
		return nil, err
	}
	if s, ok := store.(interface {
		ClusterState(context.Context) (fleet.ClusterState, error)
	}); ok {
		p, err := s.ClusterState(ctx)
		if err != nil {
			return nil, stateError(err)
		}
		c.Identity, c.Incarnation, c.Commits = p.Identity, p.Incarnation, p.Commits
	}
	c.Turns, err = f.CountLocks(ctx)
	return c, stateError(err)
}

// hostName names a host in answers: the machine's name and the process id, "a/12".
func hostName(machine string, pid int) string { return fmt.Sprintf("%s/%d", machine, pid) }

// ThisHost is the name of this process in traces, spans, and answers about a cluster.
func ThisHost() string {
	machine, _ := os.Hostname()
	return hostName(cmp.Or(machine, "a machine without a name"), os.Getpid())
}

func stampOf(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// StaysBehind reports whether a table is not copied when a slot moves from a data folder to a database or back. Such
// tables hold what the hosts of one database agree on, or what belongs to the folder (the archive, and memories that
// follow).
func StaysBehind(t state.Table) bool {
	own := []state.Table{fleet.TableLocks, tableShared, tableModules, tableLate}
	return slices.Contains(slices.Concat(own, archive.Tables(), follow.Tables()), t)
}

// Counts reads the counters.
func (h *Host) Counts() report.Counts {
	c := h.fleet.Counts()
	return report.Counts{Commits: c.Commits, CommitsRefused: c.Refused, CommitsFailed: c.Failed,
		CommitsUncertain: c.Uncertain, TurnWaits: c.Waits, TurnWaited: c.Waited, TakeOvers: c.TakeOvers,
		LateWrites: h.lateWrites.Load(), UncertainEvents: h.uncertainEvents.Load()}
}

// A late write is a native call that changes a backend and leaves this host after its session has ended. The host
// checks its session before each such call (willSend), but it may be paused between the check and the sending, and no
// store can take back a request that has been sent. So the host checks again once the request is written, and counts
// and reports a late write: it appears in the event's receipt, the slot's mode, and the cluster's state.

// tableLate holds the late writes of all hosts: time in ns since 1970 (8 bytes), a random number (8 bytes, because
// clocks may give two writes the same time), and the scope's key -> report.LateWrite, as JSON.
const tableLate state.Table = "late"

// maxLateWrites limits how many an answer lists, keptLateWrites how many the table keeps.
const maxLateWrites, keptLateWrites = 100, 1000

const warnLateWrite = "late_write: "

// watchSending returns a context that detects a late write of the operation: the request was written after the session
// had ended. The caller must call sent after the native call, which covers protocols that don't report when a request
// is written.
func (o *operation) watchSending(ctx context.Context, class abi.Class, route string) (_ context.Context, sent func()) {
	if o.lock == nil || class == abi.ClassRead {
		return ctx, func() {}
	}
	var once sync.Once // the request's writer and its caller may both get here
	look := func() {
		once.Do(func() {
			if o.lock.Alive() != nil {
				o.noteLate(route)
			}
		})
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { look() }}), look
}

// noteLate counts a late write and tells the other hosts. The host has no session at this moment and may not reach the
// store, so it keeps trying.
func (o *operation) noteLate(route string) {
	h := o.slot.host
	h.lateWrites.Add(1)
	o.lock.Late = true
	scope := o.memoryScope()
	w := &report.LateWrite{At: h.stamp(), Host: h.name, Route: route, RunID: scope.RunID, Persona: scope.PersonaID,
		EventIDs: append([]string{}, o.lock.Sending...)}
	o.provider.logger.Error("a write left this host after its session had ended: another host may have acted for the "+
		"scope, and the slot may have become read-only", "route", route, "run", scope.RunID, "persona", scope.PersonaID,
		"events", strings.Join(w.EventIDs, " "))
	key := binary.BigEndian.AppendUint64(nil, uint64(h.now().UnixNano()))
	of := o.scope.wallKey()
	key = append(binary.BigEndian.AppendUint64(key, rand.Uint64()), of[:]...)
	h.fleet.Insist(func(ctx context.Context) error {
		var b state.Batch
		b.PutRecord(tableLate, key, abi.Marshal(w))
		if err := trimLateWrites(ctx, h.store, &b); err != nil {
			return err
		}
		return h.fleet.Commit(ctx, &b)
	})
}

// trimLateWrites adds to a batch the removal of the oldest late writes, so that keptLateWrites remain after one more is
// added.
func trimLateWrites(ctx context.Context, store state.Store, b *state.Batch) error {
	var keys [][]byte
	err := state.EachRecord(ctx, store, tableLate, nil, func(r state.KeyValue) error {
		keys = append(keys, r.Key)
		return nil
	})
	for _, key := range keys[:max(0, len(keys)-keptLateWrites+1)] {
		b.DeleteRecord(tableLate, key)
	}
	return err
}

// readLateWrites returns the newest late writes first.
func readLateWrites(ctx context.Context, store state.Store) ([]report.LateWrite, error) {
	list := []report.LateWrite{}
	err := state.EachRecord(ctx, store, tableLate, nil, func(r state.KeyValue) error {
		var w report.LateWrite
		if err := abi.Unmarshal(r.Value, &w); err != nil {
			return abi.WrapError(abi.CodeUnavailable, "state: the record of a late write is damaged", err).WithReason("state")
		}
		list = append(list, w)
		return nil
	})
	slices.Reverse(list)
	return list[:min(len(list), maxLateWrites)], err
}

// lateWarning is the warning about late writes that happened after a mode became read-only; "" if there were none. A
// nil scope means all scopes.
func (h *Host) lateWarning(ctx context.Context, sc *scopeState, since string) (string, error) {
	if !h.fleet.Shared() {
		return "", nil
	}
	from, err := time.Parse(time.RFC3339Nano, since)
	if err != nil {
		return "", nil // stored by a version that recorded no times
	}
	after := binary.BigEndian.AppendUint64(nil, uint64(from.Add(-time.Second).UnixNano())) // clocks differ a little
	records, err := h.store.Records(ctx, tableLate, nil, after, maxLateWrites)
	if err != nil {
		return "", stateError(err)
	}
	var calls []string
	for _, r := range records {
		var w report.LateWrite
		if sc != nil && !bytes.HasSuffix(r.Key, sc.key[:]) || abi.Unmarshal(r.Value, &w) != nil {
			continue
		}
		calls = append(calls, fmt.Sprintf("%s of host %s at %s for %s / %s, events %s", w.Route, w.Host, w.At, w.RunID,
			w.Persona, strings.Join(w.EventIDs, " ")))
	}
	if len(calls) == 0 {
		return "", nil
	}
	return warnLateWrite + "sent after the host's session had ended, perhaps behind the wall: " +
		strings.Join(calls, "; "), nil
}
