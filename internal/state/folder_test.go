package state

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

func TestOpenMakesAPrivateFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	openTest(t, dir, Options{})
	for path, mode := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, DataFile): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		if runtime.GOOS != "windows" {
			require.Equal(t, mode, info.Mode().Perm(), path)
		}
	}
}

// A process may be killed, or another one may look, at any moment: so a data file only gets its name when it is
// complete.
func TestNoHalfOfADataFileIsEverSeen(t *testing.T) {
	dirs := make(chan string)
	seen := make(chan int64)
	go func() {
		defer close(seen)
		for dir := range dirs {
			info, err := os.Stat(filepath.Join(dir, DataFile))
			for ; err != nil; info, err = os.Stat(filepath.Join(dir, DataFile)) {
				runtime.Gosched()
			}
			seen <- info.Size()
		}
	}()
	for range 20 {
		dir := t.TempDir()
		dirs <- dir
		openTest(t, dir, Options{})
		require.GreaterOrEqual(t, <-seen, int64(4*os.Getpagesize()))
	}
	close(dirs)
}

func TestWhatAProcessLeftThatDiedWhileItMadeADataFileIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, DataFile+".123.new"), make([]byte, 100), 0o600))
	openTest(t, dir, Options{})
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, DataFile, entries[0].Name())
}

func TestOfManyThatMakeAFolderAtOnceOneHasIt(t *testing.T) {
	dir := t.TempDir()
	type opened struct {
		s   *Bolt
		err error
	}
	outcomes := make(chan opened)
	for range 8 {
		go func() {
			s, err := Open(dir, Options{Durability: DurabilityProcess, LockTimeout: time.Nanosecond})
			outcomes <- opened{s, err}
		}()
	}
	var owner *Bolt
	for range 8 {
		if o := <-outcomes; o.err == nil {
			require.Nil(t, owner, "two processes own the folder")
			owner = o.s
		} else {
			require.ErrorIs(t, o.err, ErrOwned)
		}
	}
	require.NotNil(t, owner)
	require.NoError(t, owner.Close())
}

func TestFolderHasOneOwner(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	brief := Options{LockTimeout: time.Nanosecond}
	_, err := Open(dir, brief)
	require.ErrorIs(t, err, ErrOwned)
	require.ErrorIs(t, err, ErrUnavailable)
	require.EqualError(t, err, "state: data folder "+dir+" belongs to another process; if that is a slot that is "+
		"starting, try again; otherwise wait until it ends, or use another --data folder")

	require.NoError(t, WriteSlot(dir, SlotInfo{Address: "127.0.0.1:7077", PID: 42}))
	_, err = Open(dir, brief)
	require.ErrorContains(t, err, "belongs to another process: pid 42, a slot at 127.0.0.1:7077, says its slot.json; "+
		"talk to that slot (--server), stop it")
	require.NoError(t, os.WriteFile(filepath.Join(dir, SlotFile), []byte("{"), 0o600))
	_, err = Open(dir, brief)
	require.ErrorIs(t, err, ErrOwned, "a slot.json that cannot be read hides nothing")

	require.NoError(t, s.Close())
	openTest(t, dir, brief)
	_, err = ReadSlot(dir)
	require.ErrorIs(t, err, fs.ErrNotExist, "the new owner removed what the old one left")
}

func TestFolderOfAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	cmd, out := helper(t, "own "+dir)
	require.True(t, out.Scan())
	require.Equal(t, "ready <nil>", out.Text())
	_, err := Open(dir, Options{LockTimeout: time.Nanosecond})
	var e *Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, ErrOwned)
	require.Equal(t, &SlotInfo{Address: "127.0.0.1:7077", PID: cmd.Process.Pid, TokenRequired: true}, e.Owner)
}

func TestManyOpenAtOnce(t *testing.T) {
	dir := t.TempDir()
	stores := make(chan *Bolt, 8)
	for range cap(stores) {
		go func() {
			s, err := Open(dir, Options{LockTimeout: time.Nanosecond})
			if err != nil {
				s = nil
			}
			stores <- s
		}()
	}
	owners := 0
	for range cap(stores) {
		if s := <-stores; s != nil {
			owners++
			defer func() { require.NoError(t, s.Close()) }()
		}
	}
	require.LessOrEqual(t, owners, 1)
}

// edit changes a data file with bbolt itself.
func edit(t *testing.T, dir string, fn func(tx *bbolt.Tx) error) {
	db, err := bbolt.Open(filepath.Join(dir, DataFile), 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(fn))
	require.NoError(t, db.Close())
}

// TestAnUpgradeIsToldAndCanBeUndone: an old file is only upgraded if that is allowed, and the old file is kept as a
// copy until a slot stops cleanly.
func TestAnUpgradeIsToldAndCanBeUndone(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	var b Batch
	b.PutRecord("t", []byte("k"), []byte("old"))
	_, err = s.Commit(t.Context(), &b)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	edit(t, dir, func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucketMeta)).Put([]byte(keySchema), []byte("1")) })
	path := filepath.Join(dir, DataFile)
	was, err := os.ReadFile(path)
	require.NoError(t, err)

	_, err = Open(dir, Options{Upgrade: UpgradeRefused})
	require.ErrorIs(t, err, ErrSchema)
	require.ErrorContains(t, err, "memhost upgrade")
	is, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, was, is, "nothing was changed")

	told := ""
	s, err = Open(dir, Options{Upgrade: UpgradeAndKeep, OnUpgrade: func(from int, kept string) {
		require.Equal(t, 1, from)
		told = kept
	}})
	require.NoError(t, err)
	require.Equal(t, path+".schema1", told)
	require.NoError(t, s.Close())
	for _, way := range []Upgrade{UpgradeRefused, UpgradeAndKeep} { // the folder has the present schema by now
		s, err = Open(dir, Options{Upgrade: way, OnUpgrade: func(int, string) { t.Error("told twice") }})
		require.NoError(t, err)
		b = Batch{}
		b.PutRecord("t", []byte("k"), []byte("new"))
		_, err = s.Commit(t.Context(), &b)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.FileExists(t, told)
	}

	undone := t.TempDir()
	text, err := os.ReadFile(told)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(undone, DataFile), text, 0o600))
	edit(t, undone, func(tx *bbolt.Tx) error {
		require.Equal(t, "1", string(tx.Bucket([]byte(bucketMeta)).Get([]byte(keySchema))))
		return nil
	})
	s, err = Open(undone, Options{})
	require.NoError(t, err)
	value, err := s.Record(t.Context(), "t", []byte("k"))
	require.NoError(t, err)
	require.Equal(t, "old", string(value))
	require.NoError(t, s.Close())

	s, err = Open(dir, Options{})
	require.NoError(t, err)
	require.FileExists(t, told)
	require.NoError(t, s.Close())
	require.NoFileExists(t, told, "a slot stopped cleanly")
}

// TestAnOlderSchemaIsRaised: a file that an older memhost cannot read must not look like one that it can.
func TestAnOlderSchemaIsRaised(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	edit(t, dir, func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucketMeta)).Put([]byte(keySchema), []byte("1")) })
	s, err = Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	edit(t, dir, func(tx *bbolt.Tx) error {
		require.Equal(t, "3", string(tx.Bucket([]byte(bucketMeta)).Get([]byte(keySchema))))
		return nil
	})
}

func TestSchemaMustBeThisOne(t *testing.T) {
	schema := func(text string) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucketMeta)).Put([]byte(keySchema), []byte(text)) }
	}
	for _, c := range []struct {
		name string
		edit func(tx *bbolt.Tx) error
		kind error
		text string
	}{
		{"newer", schema("7"), ErrSchema, "was made by a newer memhost (schema 7, this one reads 3); use that " +
			"version or another --data folder"},
		{"older", schema("0"), ErrSchema, "was made by an older memhost (schema 0, this one reads 3), and there is " +
			"no migration from it"},
		{"before there were schemas", func(tx *bbolt.Tx) error {
			return tx.DeleteBucket([]byte(bucketMeta))
		}, ErrSchema, "made by an older memhost (schema 0"},
		{"nonsense", schema("x"), ErrDamaged, `its schema is "x"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, openTest(t, dir, Options{}).Close())
			edit(t, dir, c.edit)
			_, err := Open(dir, Options{})
			require.ErrorIs(t, err, c.kind)
			require.ErrorContains(t, err, c.text)
			require.ErrorContains(t, err, dir)
			edit(t, dir, func(*bbolt.Tx) error { return nil }) // the lock is free
		})
	}
}

func TestInterruptedFirstStartIsANewOne(t *testing.T) {
	dir := t.TempDir()
	edit(t, dir, func(*bbolt.Tx) error { return nil }) // bbolt has created its file, and it is empty
	s := openTest(t, dir, Options{})
	mustCommit(t, s, func(b *Batch) { b.Put(space(1), "k", nil, 0) })
}

func TestMissingBucketIsDamage(t *testing.T) {
	for _, name := range []string{bucketKV, bucketLogs, bucketNames, bucketUsage, bucketTables} {
		dir := t.TempDir()
		s := openTest(t, dir, Options{})
		mustCommit(t, s, func(b *Batch) { b.Append(space(1), "log", nil) })
		require.NoError(t, s.Close())
		edit(t, dir, func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(name)) })
		s = openTest(t, dir, Options{})
		_, err := tryCommit(s, func(b *Batch) { b.Put(space(1), "k", nil, 0) })
		require.ErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, "bucket "+name+" is missing")
		if name != bucketKV {
			continue
		}
		_, err = s.Get(ctx, space(1), "k")
		require.ErrorIs(t, err, ErrDamaged)
	}
}

func TestWhatCannotBeAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	_, err := Open(file, Options{})
	require.ErrorIs(t, err, ErrFolder)
	require.EqualError(t, err, "state: data folder "+file+" is a file, not a folder; use another --data folder")
	_, err = Open(filepath.Join(file, "below"), Options{})
	require.ErrorIs(t, err, ErrFolder)
	require.ErrorContains(t, err, filepath.Join(file, "below"))

	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, DataFile), 0o700))
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrFolder)
	require.ErrorContains(t, err, "is not a regular file")

	_, err = Open("", Options{})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = Open(dir, Options{Durability: "none"})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, `want "power" or "process"`)
}

func TestSlotFile(t *testing.T) {
	dir := t.TempDir()
	_, err := ReadSlot(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, RemoveSlot(dir), "none there")

	for i := range 3 {
		info := SlotInfo{Address: "[::1]:" + strconv.Itoa(i), PID: i,
			StartedAt: time.Date(2026, 1, 2, 3, 4, 5, i, time.UTC), TokenRequired: i == 1}
		require.NoError(t, WriteSlot(dir, info))
		got, err := ReadSlot(dir)
		require.NoError(t, err)
		require.Equal(t, info, got)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 1, "no temporary files stay")
	info, err := files[0].Info()
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	}
	require.NoError(t, RemoveSlot(dir))
	_, err = ReadSlot(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)

	gone := filepath.Join(dir, "gone")
	require.ErrorContains(t, WriteSlot(gone, SlotInfo{}), filepath.Join(gone, SlotFile))
}

func copyFile(t testing.TB, from, to string) {
	in, err := os.Open(from)
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	out, err := os.Create(to)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

func TestNotADatabase(t *testing.T) {
	for name, text := range map[string][]byte{
		"empty":           {},
		"one byte":        {1},
		"text":            []byte("this is not a database\n"),
		"a page of zeros": make([]byte, 4096),
		"many zeros":      make([]byte, 1<<20),
		"SQLite":          append([]byte("SQLite format 3\x00"), make([]byte, 1<<16)...),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, DataFile)
			require.NoError(t, os.WriteFile(path, text, 0o600))
			_, err := Open(dir, Options{LockTimeout: time.Nanosecond})
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, path)
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, text, after, "it is left alone")
			_, err = Open(dir, Options{LockTimeout: time.Nanosecond})
			require.ErrorIs(t, err, ErrDamaged, fmt.Sprint("and the lock is free: ", err))
		})
	}
}

func TestOnlyAFileThatWasClosedAndNotTouchedIsTakenUnchecked(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, DataFile)
	require.NoError(t, openTest(t, dir, Options{}).Close())
	require.True(t, closedCleanly(path))

	s := openTest(t, dir, Options{})
	require.False(t, closedCleanly(path), "it is open: whoever is killed now has not closed it")
	require.NoError(t, s.Close())
	require.True(t, closedCleanly(path))

	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(path, later, later))
	require.False(t, closedCleanly(path), "somebody else has written to it")
	require.NoError(t, os.Remove(path+cleanFile))
	require.False(t, closedCleanly(path))
}
