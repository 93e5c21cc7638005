//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Pooler is PgBouncer in front of a server. The test ends it.
type Pooler struct {
	// URL names the same user and database as the server's.
	URL string

	t       testing.TB
	program string
	dir     string
	port    int
	process *exec.Cmd
}

// Pooler starts PgBouncer in front of the server, with its defaults but for the pool mode and the settings given, such
// as "ignore_startup_parameters = search_path". The test is skipped, with the reason, if PgBouncer is not installed.
func (s *Server) Pooler(t testing.TB, mode string, settings ...string) *Pooler {
	t.Helper()
	program, err := findPgBouncer()
	if err != nil {
		t.Skip("no PgBouncer (Debian's package pgbouncer): ", err)
	}
	dir, err := os.MkdirTemp("", "pgb")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Pooler{t: t, program: program, dir: dir, port: l.Addr().(*net.TCPAddr).Port}
	t.Cleanup(func() {
		p.Kill()
		_ = os.RemoveAll(dir)
	})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	ini := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n"+
		"unix_socket_dir =\nauth_type = trust\nauth_file = %s\npool_mode = %s\n%s\n", s.port, p.port,
		filepath.Join(dir, "users"), mode, strings.Join(settings, "\n"))
	users := fmt.Sprintf("%q \"\"\n\"tenant\" \"\"\n", u.User.Username())
	for name, text := range map[string]string{"pgbouncer.ini": ini, "users": users} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	u.Host = fmt.Sprintf("127.0.0.1:%d", p.port)
	p.URL = u.String()
	p.Run()
	return p
}

// Port is where the pooler listens, on 127.0.0.1.
func (p *Pooler) Port() int { return p.port }

// Run starts the pooler again, after Kill. It returns when clients get through to the server, which must run.
func (p *Pooler) Run() {
	p.t.Helper()
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.program, filepath.Join(p.dir, "pgbouncer.ini"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	if os.Geteuid() == 0 { // it refuses root, too
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.process = cmd
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, p.URL)
		if err == nil {
			_ = conn.Close(ctx)
			return
		}
		var refused *pgconn.PgError
		if errors.As(err, &refused) { // it answers; what it refuses is the test's matter
			return
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(filepath.Join(p.dir, "log"))
			p.t.Fatalf("PgBouncer did not come up: %s\n%s", err, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill ends the pooler at once.
func (p *Pooler) Kill() {
	if p.process == nil {
		return
	}
	_ = p.process.Process.Kill()
	_ = p.process.Wait()
	p.process = nil
}

// Pause stops the pooler's process until Continue.
func (p *Pooler) Pause() { _ = p.process.Process.Signal(syscall.SIGSTOP) }

// Continue ends a Pause.
func (p *Pooler) Continue() { _ = p.process.Process.Signal(syscall.SIGCONT) }

// findPgBouncer finds the program on the path, or where Debian puts it.
func findPgBouncer() (string, error) {
	path, err := exec.LookPath("pgbouncer")
	if err == nil {
		return path, nil
	}
	const debian = "/usr/sbin/pgbouncer"
	if _, statErr := os.Stat(debian); statErr == nil {
		return debian, nil
	}
	return "", err
}
