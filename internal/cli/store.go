package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/postgres"
)

// PastFile is the file of postgres.Options.Past in a data folder.
const PastFile = "cluster.json"

// PostgresOptions returns the options of the configured database, with the current value of its password's secret.
func (a *App) PostgresOptions(c *config.Config) (postgres.Options, error) {
	p := c.Store.Postgres
	o := postgres.Options{URL: p.URL, Schema: p.Schema, Connections: p.Connections, Direct: p.Direct.URL,
		Version: a.Version().Version}
	for name, to := range map[string]*string{p.Password.Secret: &o.Password,
		p.Direct.Password.Secret: &o.DirectPassword} {
		if name == "" {
			continue
		}
		password, err := c.Secrets[name].Resolve()
		if err != nil {
			return o, err
		}
		*to = password
	}
	return o, nil
}

// openStore returns host.Options.OpenStore for the configuration: nil means the file in the data folder.
func (a *App) openStore(c *config.Config, log hclog.Logger) func(context.Context, string) (state.Store, error) {
	if c.Store.Postgres.URL == "" {
		return nil
	}
	return func(ctx context.Context, dir string) (state.Store, error) {
		o, err := a.PostgresOptions(c)
		if err != nil {
			return nil, err
		}
		o.Many, o.Past = true, filepath.Join(dir, PastFile)
		if err := prepareDataFolder(dir); err != nil {
			return nil, err
		}
		store, err := postgres.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		if log != nil {
			n := store.Connections()
			log.Info("database", "connections", n.Max, "allowed_to_user", n.Allowed, "pooler", n.Pooler)
		}
		if file := filepath.Join(dir, state.DataFile); Exists(file) && log != nil {
			log.Warn("the data folder has a store of its own, which is not read: the database is", "file", file)
		}
		return store, nil
	}
}

// prepareDataFolder creates the data folder of a host whose store is elsewhere, and removes what a killed host left.
// Hosts share the database, but each has a folder of its own.
//
// Errors: state.ErrOwned if a running host has the folder.
func prepareDataFolder(dir string) error {
	if info, err := state.ReadSlot(dir); err == nil && answers(info.Address) {
		return &state.Error{Kind: state.ErrOwned, Owner: &info, Message: fmt.Sprintf("data folder %s belongs to pid %d, "+
			"which serves at %s", dir, info.PID, info.Address), Hint: "talk to that slot (--server), or give this host a " +
			"folder of its own (--data)"}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return abi.WrapError(abi.CodeUnavailable, fmt.Sprintf("data folder %s cannot be made: %s", dir, err), err).
			WithHint("use another --data folder")
	}
	return state.RemoveSlot(dir)
}

// answers reports whether something listens at an address.
func answers(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
