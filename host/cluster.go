package host

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
)

// Cluster tells what the hosts of the slot agree on. The backend is not asked.
func (s *Slot) Cluster(ctx context.Context) (*abi.Cluster, error) {
	h := s.host
	if h.fleet.Shared() {
		return readCluster(ctx, h.store, h.fleet)
	}
	v, err := s.use("cluster")
	if err != nil {
		return nil, err
	}
	defer v.provider.release()
	mode, err := s.Mode(ctx)
	if err != nil {
		return nil, err
	}
	version, _ := h.version()
	return &abi.Cluster{Store: storeFile, LateWrites: []abi.LateWrite{}, ReadOnly: mode.ReadOnly, Turns: mode.InFlight,
		Hosts:    []abi.ClusterHost{{Name: thisHost(), Version: version, Began: stampOf(h.began), Self: true}},
		Provider: v.provider.name, Module: v.provider.module.SHA256, Generation: v.manifest.LoadGeneration,
		ServingSince: v.manifest.ServingSince}, nil
}

// The values of abi.Cluster.Store.
const (
	storeFile     = "file"
	storePostgres = "postgres"
)

// ReadCluster reads what the hosts that share a store agree on. It needs no session.
func ReadCluster(ctx context.Context, store state.Store, sessions fleet.Sessions) (*abi.Cluster, error) {
	f := fleet.New(store, sessions)
	defer f.Close()
	return readCluster(ctx, store, f)
}

func readCluster(ctx context.Context, store state.Store, f *fleet.Fleet) (*abi.Cluster, error) {
	c := &abi.Cluster{Store: storePostgres, Hosts: []abi.ClusterHost{}}
	hosts, self, err := f.Hosts(ctx)
	if err != nil {
		return nil, stateError(err)
	}
	for _, h := range hosts {
		left := h.Left.Milliseconds()
		c.Hosts = append(c.Hosts, abi.ClusterHost{Name: hostName(h.Name, h.PID), Version: h.Version,
			Began: stampOf(h.Began), LeftMS: &left, Self: h.Session == self})
	}
	values, err := f.Look(ctx, factsOf(nil)...)
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
		Past(context.Context) (fleet.Past, error)
	}); ok {
		p, err := s.Past(ctx)
		if err != nil {
			return nil, stateError(err)
		}
		c.Identity, c.Incarnation, c.Commits = p.Identity, p.Incarnation, p.Commits
	}
	c.Turns, err = f.CountTurns(ctx)
	return c, stateError(err)
}

// hostName is how answers name a host: the machine's name and the process's id, "a/12".
func hostName(machine string, pid int) string { return fmt.Sprintf("%s/%d", machine, pid) }

// thisHost is the name of this process.
func thisHost() string {
	machine, _ := os.Hostname()
	return hostName(cmp.Or(machine, "a machine without a name"), os.Getpid())
}

func stampOf(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Counts are what a Host has counted since it was made, for metrics.
type Counts struct {
	// Commits are transactions that wrote state. Refused ones met something else than they relied on, and were decided
	// anew; Failed ones met a failure of the store. Nothing was applied by either. Of Uncertain ones that is not known.
	Commits, CommitsRefused, CommitsFailed, CommitsUncertain int64
	// TurnWaits is how often a write waited for one of another host to the same scope, TurnWaited how long in all.
	TurnWaits  int64
	TurnWaited time.Duration
	// TakeOvers is how often a scope was taken over from a host that had ended.
	TakeOvers int64
	// LateWrites are native calls that left this host after its session had ended (abi.LateWrite).
	LateWrites int64
	// UncertainEvents is how often the outcome of sending an event was not known.
	UncertainEvents int64
}

// Counts reads the counters.
func (h *Host) Counts() Counts {
	c := h.fleet.Counts()
	return Counts{Commits: c.Commits, CommitsRefused: c.Refused, CommitsFailed: c.Failed,
		CommitsUncertain: c.Uncertain, TurnWaits: c.Waits, TurnWaited: c.Waited, TakeOvers: c.TakeOvers,
		LateWrites: h.lateWrites.Load(), UncertainEvents: h.uncertainEvents.Load()}
}
