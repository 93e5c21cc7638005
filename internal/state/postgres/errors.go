package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/memhost/memhost/internal/state"
)

func invalid(format string, args ...any) error {
	return &state.Error{Kind: state.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}

func quoteName(name string) string { return pgx.Identifier{name}.Sanitize() }

// fail converts a driver's error to the store's, with what was attempted, where, and a hint.
func (s *Store) fail(what string, err error) error {
	var own *state.Error
	var server *pgconn.PgError
	var silent *pgconn.ConnectError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return err
	case s.closed.Load():
		return &state.Error{Kind: state.ErrClosed, Message: what + ": the store is closed"}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &silent):
		return fmt.Errorf("state: %s: %s: %w", what, s.where, err)
	}
	e := &state.Error{Kind: state.ErrUnavailable, Message: fmt.Sprintf("%s: %s: %s", what, s.where, err), Cause: err}
	if !errors.As(err, &server) {
		e.Hint = "see that the server runs and can be reached from here"
		if strings.Contains(err.Error(), "tls error: ") { // the driver has no type for it
			e.Hint = "see sslmode and sslrootcert in the URL, and the server's certificate"
		}
		return e
	}
	switch code := server.Code; {
	case strings.HasPrefix(code, "28"): // wrong user or password
		e.Kind, e.Hint = state.ErrDatabase, "correct user and password (store.postgres.url and password)"
	case code == "3D000": // no such database
		e.Kind, e.Hint = state.ErrDatabase, "create the database, or correct the name in the URL"
	case code == "42501": // no privilege
		e.Kind, e.Hint = state.ErrDatabase, "grant this user the rights on the schema, or let its owner run: memhost "+
			"cluster migrate"
	case code == "25006": // read-only transaction
		e.Kind, e.Hint = state.ErrDatabase, "name the primary, or all servers and target_session_attrs=read-write"
	case strings.HasPrefix(code, "42P01"), code == "3F000": // no such table, no such schema
		e.Kind, e.Hint = state.ErrSchema, "run: memhost cluster migrate"
	case code == "53300": // too many connections
		e.Hint = tooManyHint
	case code == "08P01": // a violation of the protocol
		e.Hint = poolerHintOf(server)
	case code == "53100": // disk full
		e.Hint = "make room on the server's disk and try again"
	case strings.HasPrefix(code, "XX"): // damaged data, internal error
		e.Kind, e.Hint = state.ErrDamaged, "read the server's log, and restore the database from a backup"
	}
	return e
}

// uncertain reports whether a commit that ended with err may have happened: the connection was lost, or the server
// closed it. Any other error of the server means that the transaction was rolled back.
func uncertain(err error) bool {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return true
	}
	return server.Severity != "ERROR"
}

// errVanished means that another batch deleted a record while this one was about to lock it, so that it is not locked.
var errVanished = errors.New("a record was deleted by another batch at the same moment")

// again reports whether a batch was not applied only because it collided with another one.
func again(err error) bool {
	var server *pgconn.PgError
	return errors.Is(err, errVanished) || errors.As(err, &server) && (server.Code == "40001" || server.Code == "40P01")
}
