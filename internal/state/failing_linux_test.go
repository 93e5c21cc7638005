package state

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// replaceFD replaces the store's file, under its descriptor, by the file at path, until restore is called.
func replaceFD(t *testing.T, s *Bolt, path string) (restore func()) {
	fd := int(s.file.Fd())
	saved, err := syscall.Dup(fd)
	require.NoError(t, err)
	other, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Dup3(int(other.Fd()), fd, syscall.O_CLOEXEC))
	require.NoError(t, other.Close())
	return func() {
		require.NoError(t, syscall.Dup3(saved, fd, syscall.O_CLOEXEC))
		require.NoError(t, syscall.Close(saved))
	}
}

// freePages creates free space in the file, so that it need not grow, and a key k.
func freePages(t *testing.T, s *Bolt) {
	mustCommit(t, s, func(b *Batch) { b.Put(space(2), "large", make([]byte, 200<<10), 0) })
	mustCommit(t, s, func(b *Batch) { b.DeletePrefix(space(2), "") })
	for range 3 { // until no transaction refers to them any more
		mustCommit(t, s, func(b *Batch) { b.Put(space(1), "k", []byte("kept"), AnyVersion) })
	}
}

func TestFullDiskFailsTheWholeGroupAndNotTheStore(t *testing.T) {
	for device, text := range map[string]string{
		"/dev/full": "no space left on device; make room on the disk and try again",
		"/dev/null": "could not be written: invalid argument", // accepts the write, but fails the sync
	} {
		t.Run(device, func(t *testing.T) {
			g := newGate()
			s, err := Open(t.TempDir(), Options{Durability: DurabilityPower})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			freePages(t, s)
			s.opts.beforeWrite = g.hold
			restore := replaceFD(t, s, device)
			one := start(t, s, ctx, 0, func(b *Batch) { b.Put(space(1), "k", []byte("lost"), AnyVersion) })
			<-g.arrived
			two := start(t, s, ctx, 1, func(b *Batch) { b.Append(space(1), "log", []byte("lost")) })
			three := start(t, s, ctx, 2, func(b *Batch) { b.PutRecord("t", []byte("r"), []byte("lost")) })
			g.open <- struct{}{}
			<-g.arrived
			g.open <- struct{}{}
			for _, a := range []answer{<-one, <-two, <-three} {
				require.ErrorIs(t, a.err, ErrUnavailable)
				require.NotErrorIs(t, a.err, ErrUncertain)
				require.ErrorContains(t, a.err, text)
				require.ErrorContains(t, a.err, s.path)
			}
			v, err := s.Get(ctx, space(1), "k")
			require.NoError(t, err)
			require.Equal(t, "kept", string(v.Data), "what was there is served")

			restore()
			four := start(t, s, ctx, 0, func(b *Batch) { b.Append(space(1), "log", []byte("kept")) })
			<-g.arrived
			g.open <- struct{}{}
			a := <-four
			require.NoError(t, a.err, "the store is usable again")
			require.Equal(t, []int64{1}, a.res.Seqs)
		})
	}
}

func TestFailedSyncIsToldByTheNextCommit(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Durability: DurabilityProcess})
	put := func() error {
		_, err := tryCommit(s, func(b *Batch) { b.Put(space(1), "k", nil, AnyVersion) })
		return err
	}
	freePages(t, s)
	restore := replaceFD(t, s, "/dev/null")
	s.syncErr = syscall.EIO // as if a timed sync had failed; the committer is idle
	err := put()
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "could not be synced: invalid argument")
	restore()
	require.NoError(t, put(), "synced at last")
}

// TestFileSizeLimit: a process whose files may not grow can still read, and can write again when they may.
func TestFileSizeLimit(t *testing.T) {
	_, out := helper(t, "limit "+t.TempDir())
	require.True(t, out.Scan())
	require.Regexp(t, `^state: commit: data file .*state.db could not be written: file resize error: .*file too large; raise the limit`, out.Text())
	require.True(t, out.Scan())
	require.Equal(t, "then [1]", out.Text())
}

func runPlatformHelper(name, dir string) error {
	if name != "limit" {
		return fmt.Errorf("there is no helper %q", name)
	}
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	append := func() (CommitResult, error) {
		return tryCommit(s, func(b *Batch) { b.Append(space(1), "log", make([]byte, 1<<20)) })
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 128 << 10, Max: was.Max}); err != nil {
		return err
	}
	_, err = append()
	fmt.Println(err)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	res, err := append()
	if err != nil {
		return err
	}
	fmt.Println("then", res.Seqs)
	return s.Close()
}

// TestNoRightToTheFolder runs this binary's open as an unprivileged user if the tests run as root, which ignores modes.
func TestNoRightToTheFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Mkdir(dir, 0o700))
	if os.Geteuid() != 0 {
		require.NoError(t, os.Chmod(dir, 0o500))
		_, err := Open(dir, Options{})
		requireNoRight(t, dir, err)
		return
	}
	for d := filepath.Dir(dir); len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		require.NoError(t, os.Chmod(d, 0o755))
	}
	binary := filepath.Join(filepath.Dir(dir), "test")
	text, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(binary, text, 0o755))
	cmd := exec.Command(binary)
	cmd.Env = []string{helperEnv + "=own " + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	require.NoError(t, err)
	said, ok := strings.CutPrefix(strings.TrimSpace(string(out)), "ready ")
	require.True(t, ok, "%s", out)
	requireNoRight(t, dir, &Error{Kind: ErrFolder, Message: said})
}

func requireNoRight(t *testing.T, dir string, err error) {
	require.ErrorIs(t, err, ErrFolder)
	require.ErrorContains(t, err, "data folder "+dir+" cannot be used")
	require.ErrorContains(t, err, "permission denied; give this user the right")
}
