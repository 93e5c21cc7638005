package server

import (
	"net/http"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// backup is the handler of GET /v1/backup. An error after the first byte closes the connection, so that a client does
// not mistake the part for the whole.
func (s *Server) backup(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.options.Backup == nil:
		s.fail(w, r, wire.OpBackup, abi.NewError(abi.CodeUnsupported, "this slot makes no backups").WithReason("backup"))
		return
	case s.options.Scopes.Only != nil:
		s.fail(w, r, wire.OpBackup, errAllScopes("a backup is").WithHint("stop the slot and use `memhost backup` on its "+
			"data folder, or set memory.scopes to any"))
		return
	}
	out := &backupWriter{w: w, connection: http.NewResponseController(w), within: s.options.WriteTimeout}
	if r.Method == http.MethodHead {
		out.begin()
		return
	}
	if err := s.options.Backup(r.Context(), out); err != nil {
		if !out.begun {
			s.fail(w, r, wire.OpBackup, err)
			return
		}
		s.log.Error("a backup was cut off", "error", err, "request_id", requestID(r))
		panic(http.ErrAbortHandler)
	}
}

// backupWriter starts the answer with the first byte, and limits the time for each part.
type backupWriter struct {
	w          http.ResponseWriter
	connection *http.ResponseController
	within     time.Duration
	begun      bool
}

func (b *backupWriter) begin() {
	b.begun = true
	b.w.Header().Set("Content-Type", wire.MediaGzip)
	b.w.Header().Set("Content-Disposition", `attachment; filename="memhost-backup.tar.gz"`)
	b.w.WriteHeader(http.StatusOK)
}

func (b *backupWriter) Write(p []byte) (int, error) {
	if !b.begun {
		b.begin()
	}
	_ = b.connection.SetWriteDeadline(time.Now().Add(b.within))
	return b.w.Write(p)
}
