package host

import (
	"context"
	"time"

	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
)

// Cluster is what the hosts of one slot agree on at a moment.
type Cluster struct {
	// Hosts are those whose sessions have not ended, in the order in which they came.
	Hosts []ClusterHost `json:"hosts"`
	// Provider serves since ServingSince; Generation counts the loads of all hosts. Empty while nothing has served yet.
	Provider     string `json:"provider,omitempty"`
	Module       string `json:"module,omitempty"` // SHA-256
	Generation   int64  `json:"generation,omitempty"`
	ServingSince string `json:"serving_since,omitempty"`
	// ReadOnly is the slot's mode.
	ReadOnly bool `json:"read_only"`
	// Turns is how many scopes are being written.
	Turns int `json:"turns"`
}

// ClusterHost is one host of a slot.
type ClusterHost struct {
	Name    string    `json:"name"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Began   time.Time `json:"began"`
	// LeftMS is how long its session lasts if it is not renewed, in milliseconds.
	LeftMS int64 `json:"left_ms"`
}

// ReadCluster reads what the hosts that share a store agree on. It needs no session.
func ReadCluster(ctx context.Context, store state.Store, sessions fleet.Sessions) (*Cluster, error) {
	f := fleet.New(store, sessions)
	defer f.Close()
	c := &Cluster{Hosts: []ClusterHost{}}
	hosts, _, err := f.Hosts(ctx)
	if err != nil {
		return nil, stateError(err)
	}
	for _, h := range hosts {
		c.Hosts = append(c.Hosts, ClusterHost{Name: h.Name, PID: h.PID, Version: h.Version, Began: h.Began,
			LeftMS: h.Left.Milliseconds()})
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
	held, err := f.Held(ctx)
	c.Turns = len(held)
	return c, stateError(err)
}
