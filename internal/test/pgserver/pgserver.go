//go:build unix

// Package pgserver starts a PostgreSQL server for tests: in a scratch folder, on the loopback, as an ordinary user.
package pgserver

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a running server. The test ends it.
type Server struct {
	// URL names the user "memhost", who may do everything, and the database "postgres".
	URL string

	t    testing.TB
	bin  string
	dir  string
	port int

	process *os.Process
	ended   <-chan struct{}
}

// nobody is the user that runs the server when the tests run as root: PostgreSQL refuses root.
const nobody = 65534

// Start makes a database cluster and starts its server. The test is skipped, with the reason, if no PostgreSQL is
// installed.
func Start(t testing.TB) *Server {
	t.Helper()
	bin, err := findBin()
	if err != nil {
		t.Skip("no PostgreSQL: ", err)
	}
	s := newServer(t, bin)
	s.makeData()
	s.choosePort()
	s.Run()
	return s
}

// newServer makes the folder of a server, which the test removes.
func newServer(t testing.TB, bin string) *Server {
	t.Helper()
	// Not t.TempDir(): its parents are closed to other users, and its name is too long for a socket.
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, bin: bin, dir: dir}
	t.Cleanup(func() {
		s.Kill()
		_ = os.RemoveAll(dir)
	})
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// makeData makes the files of a new server: a copy of those that an earlier test of this user had made, which takes a
// fifth of initdb's time.
func (s *Server) makeData() {
	s.t.Helper()
	kept, keptErr := s.keptData()
	if keptErr == nil {
		if _, err := os.Stat(kept); err == nil {
			s.copyFiles(kept, s.data())
			return
		}
	}
	initdb := s.command("initdb", append([]string{"-D", s.data()}, initdbOptions...)...)
	if out, err := initdb.CombinedOutput(); err != nil {
		s.t.Fatalf("initdb: %s\n%s", err, out)
	}
	if keptErr != nil { // the user has no cache folder
		return
	}
	unfinished, err := os.MkdirTemp(filepath.Dir(kept), "unfinished")
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	s.copyFiles(s.data(), filepath.Join(unfinished, "data"))
	_ = os.Rename(filepath.Join(unfinished, "data"), kept) // fails if another test was first
}

var initdbOptions = []string{"-U", "memhost", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync",
	"--data-checksums"}

// keptData names the copy in the user's cache folder: for this PostgreSQL, and its initdb options.
func (s *Server) keptData() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	version, err := s.command("initdb", "--version").Output()
	if err != nil {
		return "", err
	}
	made := sha256.Sum256(fmt.Append(version, s.bin, initdbOptions))
	folder := filepath.Join(cache, "memhost", "test-postgres")
	return filepath.Join(folder, fmt.Sprintf("%x", made[:8])), os.MkdirAll(folder, 0o700)
}

// choosePort finds a free port.
func (s *Server) choosePort() {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.URL = fmt.Sprintf("postgres://memhost@127.0.0.1:%d/postgres?sslmode=disable", s.port)
}

// findBin returns the folder of the newest PostgreSQL: on the path, or where Debian puts it.
func findBin() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("initdb is neither on the path nor in /usr/lib/postgresql")
	}
	number := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4]) // a folder that is no number is the oldest
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return number(a) - number(b) })), nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return cmd
}

// Run starts the server again, after Kill. It returns when the server takes connections.
func (s *Server) Run() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ended := s.start()
	for {
		conn, err := pgx.Connect(ctx, s.URL)
		if err == nil {
			_ = conn.Close(ctx)
			return
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			s.t.Fatalf("the server did not come up: %s\n%s", err, text)
		case <-ended: // processes of the killed server were still ending
			ended = s.start()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// start starts the server's process. The channel is closed when it has ended.
func (s *Server) start() <-chan struct{} {
	s.t.Helper()
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd := s.command("postgres", "-D", s.data(), "-p", strconv.Itoa(s.port), "-k", s.dir, "-c",
		"listen_addresses=127.0.0.1", "-c", "shared_buffers=32MB", "-c", "max_connections=100")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	s.process, s.ended = cmd.Process, ended
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its log says more
	}()
	return ended
}

// Copy copies the files of the server, which does not run: a backup. It returns what puts them back.
func (s *Server) Copy() (restore func()) {
	s.t.Helper()
	kept := filepath.Join(s.dir, "copy")
	s.copyFiles(s.data(), kept)
	return func() {
		s.t.Helper()
		if err := os.RemoveAll(s.data()); err != nil {
			s.t.Fatal(err)
		}
		s.copyFiles(kept, s.data())
	}
}

// Dump writes a database with pg_dump, as an operator backs it up. restore makes a new database of it and returns its URL.
func (s *Server) Dump(database string) (restore func(name string) string) {
	s.t.Helper()
	file := filepath.Join(s.dir, database+".dump")
	run := func(name string, args ...string) {
		s.t.Helper()
		if out, err := s.command(name, args...).CombinedOutput(); err != nil {
			s.t.Fatalf("%s: %s\n%s", name, err, out)
		}
	}
	at := func(database string) string { return strings.Replace(s.URL, "/postgres?", "/"+database+"?", 1) }
	run("pg_dump", "--format=custom", "--file="+file, "--dbname="+at(database))
	return func(name string) string {
		s.t.Helper()
		run("createdb", "--maintenance-db="+s.URL, name)
		run("pg_restore", "--exit-on-error", "--dbname="+at(name), file)
		return at(name)
	}
}

func (s *Server) copyFiles(from, to string) {
	s.t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		s.t.Fatalf("cp: %s\n%s", err, out)
	}
}

// Standby starts a second server that follows this one and takes no writes. The test ends it.
func (s *Server) Standby() *Server {
	s.t.Helper()
	other := newServer(s.t, s.bin)
	backup := other.command("pg_basebackup", "-D", other.data(), "-d", s.URL, "-R", "-c", "fast")
	if out, err := backup.CombinedOutput(); err != nil {
		s.t.Fatalf("pg_basebackup: %s\n%s", err, out)
	}
	other.choosePort()
	other.Run()
	return other
}

// Promote makes a standby take writes.
func (s *Server) Promote() {
	s.t.Helper()
	if out, err := s.command("pg_ctl", "promote", "-D", s.data(), "-w").CombinedOutput(); err != nil {
		s.t.Fatalf("pg_ctl promote: %s\n%s", err, out)
	}
}

// Pause stops all processes of the server, as on a machine that swaps or is moved, until Continue. It is not in /proc
// everywhere who they are: elsewhere than on Linux the connections' processes go on.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Continue ends a Pause.
func (s *Server) Continue() { s.signal(syscall.SIGCONT) }

// signal sends a signal to the server's first process and then to those that it has started.
func (s *Server) signal(signal syscall.Signal) {
	if s.process == nil {
		return
	}
	_ = s.process.Signal(signal) // one that has ended needs none
	pid := strconv.Itoa(s.process.Pid)
	children, _ := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	for _, child := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil && pid > 1 {
			_ = syscall.Kill(pid, signal)
		}
	}
}

// Port is where the server listens, on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// Kill ends the server at once, as a crash does. Its processes for connections end by themselves, soon after.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Kill()
	<-s.ended
	s.process = nil
}
