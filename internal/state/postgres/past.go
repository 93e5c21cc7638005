package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/memhost/memhost/internal/base/wholefile"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/fleet"
)

// A database may lose commits: it is restored from a backup, or a failover promotes a server that lacks them. Then
// receipts that callers have are gone. Each host therefore remembers the latest commit that it saw, also in a file
// (Options.Past), and looks for it on each new connection and with each renewal of its session. If the commit is
// missing, the host neither reads nor writes until AcceptLoss has started a new incarnation and the host was restarted,
// because what it holds in memory may come from the lost commits. A host remembers another host's commit only after the
// same server has accepted a later write. Until then, the commit may be one whose client gave up waiting for a standby:
// it is visible, but if a failover loses it, nothing that was acknowledged is lost.

// knownPast is what a host knows about the database's past, and the content of the file Options.Past:
//
//	{"identity": "3e4c...", "incarnation": 1, "commit": 4711, "token": "9f0b..."}
type knownPast struct {
	Identity    string `json:"identity"`
	Incarnation int64  `json:"incarnation"`
	// Commit is the highest commit number that was seen, Token that commit's token in hexadecimal.
	Commit int64  `json:"commit"`
	Token  string `json:"token"`
	// server is the server that answered, as identified by Store.serverText. It is not stored.
	server string
}

// pastCheck checks the database against what this host has seen. A nil pastCheck knows nothing and reports no errors.
type pastCheck struct {
	where, file string
	schema      schemaName
	server      string // SQL of Store.serverText

	mu    sync.Mutex
	known knownPast
	kept  knownPast // content of the file
	begun bool      // this process has checked, and found nothing wrong
	wrong error     // why the database is not the one that was seen; stays set until this host is restarted
}

// openPast reads what an earlier process of this host has seen.
func openPast(s *Store, file string) (*pastCheck, error) {
	p := &pastCheck{where: s.where, file: file, schema: s.schema, server: s.serverText()}
	if file == "" {
		return p, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p.known)
	}
	if err != nil {
		return nil, &state.Error{Kind: state.ErrFolder, Cause: err, Message: fmt.Sprintf("%s cannot be read: %s", file, err),
			Hint: "remove the file if this host has seen no other database than this one"}
	}
	p.kept = p.known
	return p, nil
}

// queryer is a connection, a pool or a transaction.
type queryer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// check looks for the commit that was seen, and returns the latest one, which the caller passes to learn after a write
// on the same connection.
//
// Errors: state.ErrIdentity for another cluster's tables; state.ErrLoss for a database that lacks commits.
func (p *pastCheck) check(ctx context.Context, on queryer) (now knownPast, err error) {
	if p == nil {
		return now, nil
	}
	p.mu.Lock()
	known, begun, wrong := p.known, p.begun, p.wrong
	p.mu.Unlock()
	if wrong != nil {
		return now, wrong
	}
	var first int64
	var token, latest []byte
	err = on.QueryRow(ctx, p.schema.in(`SELECT `+p.server+`, (SELECT value FROM @.meta WHERE name = 'identity'),
		(SELECT value::bigint FROM @.meta WHERE name = 'incarnation'),
		coalesce((SELECT token FROM @.commits WHERE number = $1), ''), coalesce((SELECT min(number) FROM @.commits), 0),
		coalesce(number, 0), coalesce(token, '') FROM (SELECT 1) one
		LEFT JOIN (SELECT number, token FROM @.commits ORDER BY number DESC LIMIT 1) latest ON true`), known.Commit).
		Scan(&now.server, &now.Identity, &now.Incarnation, &token, &first, &now.Commit, &latest)
	if err != nil {
		return now, err
	}
	now.Token = hex.EncodeToString(latest)
	want, _ := hex.DecodeString(known.Token) // a damaged token is not found
	switch {
	case known.Identity == "":
	case now.Identity != known.Identity:
		return now, p.refuse(&state.Error{Kind: state.ErrIdentity, Message: fmt.Sprintf("%s is cluster %s, and this host's "+
			"data folder belongs to cluster %s", p.where, now.Identity, known.Identity),
			Hint: "correct store.postgres.url or schema, or give this host an empty data folder (--data)"})
	case now.Incarnation > known.Incarnation && begun:
		return now, p.refuse(&state.Error{Kind: state.ErrLoss, Message: p.where + ": an operator accepted that the " +
			"database had lost commits, and this host may know of some of them", Hint: "restart this host"})
	case now.Incarnation > known.Incarnation:
	case now.Incarnation < known.Incarnation || known.Commit > 0 && !bytes.Equal(token, want) && known.Commit >= first:
		// A former primary that comes back lacks them too. It accepts no write, because no standby follows it.
		var server string
		proof := make([]byte, 16)
		_, _ = rand.Read(proof) // never fails
		err := on.QueryRow(ctx, p.schema.in("INSERT INTO @.commits (token, lost) VALUES ($1, true) RETURNING "+p.server),
			proof).Scan(&server)
		if err != nil {
			return now, err
		}
		if server != now.server {
			return now, otherServer(p.where)
		}
		return now, p.refuse(&state.Error{Kind: state.ErrLoss, Message: fmt.Sprintf("%s has lost commits: this host saw "+
			"number %d of incarnation %d, which is not there; the latest is number %d of incarnation %d. It was restored from "+
			"a backup, or a failover lost them", p.where, known.Commit, known.Incarnation, now.Commit, now.Incarnation),
			Hint: "restore a newer copy, or run: memhost cluster accept-loss"})
	}
	return now, nil
}

// refuse makes an error permanent.
func (p *pastCheck) refuse(err *state.Error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = err
	return err
}

// error is what was found wrong; nil if nothing was.
func (p *pastCheck) error() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrong
}

// learn remembers what check returned, unless a later commit is known.
func (p *pastCheck) learn(now knownPast) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = true
	now.server = ""
	if now.Identity != p.known.Identity || now.Incarnation != p.known.Incarnation || now.Commit > p.known.Commit {
		p.known = now
	}
}

// committed remembers a commit of this host.
func (p *pastCheck) committed(number int64, token []byte) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if number > p.known.Commit {
		p.known.Commit, p.known.Token = number, hex.EncodeToString(token)
	}
}

// keep writes the file if it is outdated. After a failure a later call writes it.
func (p *pastCheck) keep() {
	if p == nil || p.file == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == p.kept {
		return
	}
	text, err := json.Marshal(p.known)
	if err == nil && wholefile.Write(p.file, append(text, '\n'), 0o600) == nil {
		p.kept = p.known
	}
}

// ClusterState identifies the cluster of this database, and its progress.
func (s *Store) ClusterState(ctx context.Context) (p fleet.ClusterState, err error) {
	_, err = s.row(ctx, "cluster state", `SELECT (SELECT value FROM @.meta WHERE name = 'identity'),
		(SELECT value::bigint FROM @.meta WHERE name = 'incarnation'), coalesce((SELECT max(number) FROM @.commits), 0)`, nil,
		&p.Identity, &p.Incarnation, &p.Commits)
	return p, err
}

// Lost reports whether the database lacks commits that a host has seen, according to the host's file Options.Past.
//
// Errors: state.ErrFolder for a missing or damaged file; state.ErrIdentity for one of another cluster.
func (s *Store) Lost(ctx context.Context, file string) (bool, error) {
	p, err := openPast(s, file)
	if err != nil {
		return false, err
	}
	if p.known.Identity == "" {
		return false, &state.Error{Kind: state.ErrFolder, Message: file + " is not there: no host saw a database from " +
			"this folder", Hint: "name the data folder of a host: --data FOLDER"}
	}
	_, err = p.check(ctx, s.pool)
	if errors.Is(err, state.ErrLoss) {
		return true, nil
	}
	return false, s.fail("accept a loss", err)
}

// AcceptLoss starts a new incarnation of a database that has lost commits, and returns its number. All hosts must be
// restarted: earlier sessions can no longer commit.
func (s *Store) AcceptLoss(ctx context.Context) (incarnation int64, err error) {
	err = s.begin(ctx, s.pool, func(tx pgx.Tx) error {
		// Locking the identity keeps hosts from joining.
		if _, err := tx.Exec(ctx, s.schema.in("SELECT value FROM @.meta WHERE name = 'identity' FOR UPDATE")); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, s.schema.in("DELETE FROM @.sessions")); err != nil {
			return err
		}
		return tx.QueryRow(ctx, s.schema.in(`UPDATE @.meta SET value = (value::bigint + 1)::text WHERE name = 'incarnation'
			RETURNING value::bigint`)).Scan(&incarnation)
	})
	return incarnation, s.fail("accept a loss", err)
}
