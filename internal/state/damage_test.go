package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/brief"
	"go.etcd.io/bbolt"
)

// sample is a store with several hundred pages: branches, large values, free pages, a table in its own pages and one
// inside its parent's.
type sample struct {
	path string
	kv   map[string]string
	log  []string
}

func newSample(t testing.TB) *sample {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	m := &sample{path: filepath.Join(dir, DataFile), kv: map[string]string{}}
	for range 10 {
		mustCommit(t, s, func(b *Batch) {
			for range 60 {
				key := fmt.Sprintf("key/%05d", len(m.kv))
				m.kv[key] = strings.Repeat(key, len(m.kv)%90)
				b.Put(space(1), key, []byte(m.kv[key]), 0)
				m.log = append(m.log, "entry of "+key)
				b.Append(space(1), "log", []byte(m.log[len(m.log)-1]))
				b.PutRecord("ledger", []byte(key), []byte(m.kv[key]))
			}
			b.PutRecord("modes", []byte("one"), []byte("small"))
			b.Put(space(3), "large", make([]byte, 50<<10), AnyVersion)
		})
	}
	mustCommit(t, s, func(b *Batch) { b.DeletePrefix(space(3), "") })
	require.NoError(t, s.Close())
	return m
}

// visit opens a damaged copy, reads everything and writes to it. Every result must be right, or an error that says that
// the file is damaged, and the process must survive.
func (m *sample) visit(t testing.TB, dir string) (opened bool, failures int) {
	s, err := Open(dir, Options{Durability: DurabilityProcess})
	if err != nil {
		require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrSchema), "%v", err)
		return false, 1
	}
	defer func() {
		if err := s.Close(); err != nil {
			require.ErrorIs(t, err, ErrUnavailable)
		}
	}()
	return true, m.use(t, s)
}

func (m *sample) use(t testing.TB, s *Bolt) (failures int) {
	ok := func(err error) bool {
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			failures++
		}
		return err == nil
	}
	for after, more := "", true; more; {
		page, err := s.List(ctx, space(1), ListQuery{After: after, Values: true, Limit: 50})
		more = ok(err) && page.More
		for _, i := range page.Items {
			require.Equal(t, m.kv[i.Key], string(i.Data))
			after = i.Key
		}
	}
	for key, want := range m.kv {
		if v, err := s.Get(ctx, space(1), key); ok(err) && v.Version != 0 {
			require.Equal(t, want, string(v.Data))
		}
		if r, err := s.Record(ctx, "ledger", []byte(key)); ok(err) && r != nil {
			require.Equal(t, want, string(r))
		}
	}
	for _, reverse := range []bool{false, true} {
		es, err := s.ReadLog(ctx, space(1), LogQuery{Log: "log", Reverse: reverse})
		ok(err)
		for _, e := range es.Items {
			require.Equal(t, m.log[e.Seq-1], string(e.Data))
		}
	}
	_, err := s.Records(ctx, "modes", nil, nil, 0)
	ok(err)
	_, err = s.Count(ctx, space(1), "")
	ok(err)
	_, err = s.Usage(ctx, space(1))
	ok(err)
	for _, fill := range []func(b *Batch){
		func(b *Batch) { b.Put(space(2), "new", make([]byte, 20<<10), AnyVersion) },
		func(b *Batch) { b.Append(space(1), "log", []byte("new")) },
		func(b *Batch) { b.PutRecord("ledger", []byte("key/00000"), make([]byte, 100)) },
		func(b *Batch) { b.DeletePrefix(space(1), "") },
		func(b *Batch) { b.Put(space(1), "new", nil, AnyVersion) },
	} {
		_, err := tryCommit(s, fill)
		ok(err)
	}
	return failures
}

func TestFlippedBytesAreErrorsNotCrashes(t *testing.T) {
	m := newSample(t)
	whole, err := os.ReadFile(m.path)
	require.NoError(t, err)
	page := os.Getpagesize()
	rounds := 150
	if brief.Tests() {
		rounds = 20
	}
	var opened, noticed int
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		bytes := append([]byte{}, whole...)
		for range 1 << rng.IntN(8) {
			at := 2*page + rng.IntN(len(bytes)-2*page)
			if rng.IntN(2) == 0 { // damage at the start of a page has the most effect
				at = at/page*page + rng.IntN(64)
			}
			bytes[at] ^= byte(1 + rng.IntN(255))
		}
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, DataFile), bytes, 0o600))
		ok, failures := m.visit(t, dir)
		if ok {
			opened++
		}
		if failures > 0 {
			noticed++
		}
	}
	t.Logf("%d of %d damaged files were noticed, %d of them could be opened", noticed, rounds, opened)
	require.Greater(t, noticed, rounds/2)
}

func TestOneDamagedHeaderIsSurvived(t *testing.T) {
	m := newSample(t)
	whole, err := os.ReadFile(m.path)
	require.NoError(t, err)
	for i := range 2 {
		bytes := append([]byte{}, whole...)
		clear(bytes[i*os.Getpagesize() : i*os.Getpagesize()+100])
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, DataFile), bytes, 0o600))
		opened, failures := m.visit(t, dir)
		require.True(t, opened, "the other header serves, as after a crash in the midst of a commit")
		require.Zero(t, failures)
	}
}

func TestCutOffFiles(t *testing.T) {
	m := newSample(t)
	info, err := os.Stat(m.path)
	require.NoError(t, err)
	for size := int64(1); size < info.Size(); size += 1 + size/3 {
		dir := t.TempDir()
		path := filepath.Join(dir, DataFile)
		copyFile(t, m.path, path)
		require.NoError(t, os.Truncate(path, size))
		opened, _ := m.visit(t, dir)
		// The end of the file may be free space.
		require.True(t, !opened || size > info.Size()/2, "%d of %d bytes", size, info.Size())
	}
}

// TestFileDamagedWhileOpen covers damage that Open could not see. After truncation, reads of the file are memory
// faults.
func TestFileDamagedWhileOpen(t *testing.T) {
	for name, damage := range map[string]func(f *os.File, size int64) error{
		"cut off": func(f *os.File, _ int64) error { return f.Truncate(int64(2 * os.Getpagesize())) },
		"zeros": func(f *os.File, size int64) error {
			_, err := f.WriteAt(make([]byte, size-int64(2*os.Getpagesize())), int64(2*os.Getpagesize()))
			return err
		},
		"headers": func(f *os.File, _ int64) error {
			_, err := f.WriteAt(make([]byte, 2*os.Getpagesize()), 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newSample(t)
			s, err := Open(filepath.Dir(m.path), Options{Durability: DurabilityProcess})
			require.NoError(t, err)
			f, err := os.OpenFile(m.path, os.O_RDWR, 0)
			require.NoError(t, err)
			info, err := f.Stat()
			require.NoError(t, err)
			require.NoError(t, damage(f, info.Size()))
			require.NoError(t, f.Close())
			require.Greater(t, m.use(t, s), 600)
			_ = s.Close() // returns, whatever the error
		})
	}
}

// TestPagesThatLeadBack: bbolt would follow such pages until the stack overflows, which cannot be recovered.
func TestPagesThatLeadBack(t *testing.T) {
	m := newSample(t)
	bytes, err := os.ReadFile(m.path)
	require.NoError(t, err)
	size := os.Getpagesize()
	found := 0
	for at := 2 * size; at < len(bytes); at += size {
		if binary.NativeEndian.Uint16(bytes[at+8:]) != flagBranch {
			continue
		}
		dir := t.TempDir()
		loop := append([]byte{}, bytes...)
		copy(loop[at+pageHeader+8:], loop[at:at+8]) // the first child is the page itself
		require.NoError(t, os.WriteFile(filepath.Join(dir, DataFile), loop, 0o600))
		s, err := Open(dir, Options{})
		if err == nil { // a page of an old transaction, which is no longer referenced
			require.NoError(t, s.Close())
			continue
		}
		found++
		require.ErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, "is used twice")
		require.ErrorContains(t, err, filepath.Join(dir, DataFile))
	}
	require.NotZero(t, found)
}

// TestCheckAcceptsWhatBboltAccepts: an intact file is never rejected. Random histories, large keys, many pages.
func TestCheckAcceptsWhatBboltAccepts(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 2))
		dir := t.TempDir()
		s := openTest(t, dir, Options{})
		for range 30 {
			mustCommit(t, s, func(b *Batch) {
				for range rng.IntN(100) {
					key := strings.Repeat(string(rune('a'+rng.IntN(26))), 1+rng.IntN(40)*rng.IntN(40)) +
						fmt.Sprint(rng.IntN(1000))
					b.Put(space(byte(rng.IntN(3))), key, make([]byte, rng.IntN(20)*rng.IntN(500)), AnyVersion)
					b.Append(space(byte(rng.IntN(3))), key, make([]byte, rng.IntN(100)))
				}
				if rng.IntN(4) == 0 {
					b.DeletePrefix(space(byte(rng.IntN(3))), string(rune('a'+rng.IntN(26))))
				}
			})
		}
		require.NoError(t, s.Close())
		db, err := bbolt.Open(filepath.Join(dir, DataFile), 0o600, nil)
		require.NoError(t, err)
		require.NoError(t, db.View(func(tx *bbolt.Tx) error {
			for err := range tx.Check() {
				return err
			}
			return nil
		}))
		require.NoError(t, db.Close())
		openTest(t, dir, Options{})
	}
}

// FuzzDamagedFile writes any bytes over any part of the file.
func FuzzDamagedFile(f *testing.F) {
	m := newSample(f)
	whole, err := os.ReadFile(m.path)
	require.NoError(f, err)
	f.Add(uint32(8192), []byte{1, 2, 3})
	f.Add(uint32(40), []byte{0xff})
	f.Add(uint32(3*4096), make([]byte, 4096))
	f.Fuzz(func(t *testing.T, at uint32, over []byte) {
		bytes := append([]byte{}, whole...)
		copy(bytes[int(at)%len(bytes):], over)
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, DataFile), bytes, 0o600))
		m.visit(t, dir)
	})
}

// TestDamageMetWhileCommitting: bbolt panics in the middle of a commit. After that nothing is written, but reads still
// work.
func TestDamageMetWhileCommitting(t *testing.T) {
	m := newSample(t)
	s, err := Open(filepath.Dir(m.path), Options{Durability: DurabilityProcess})
	require.NoError(t, err)
	c := &checker{f: s.file, size: 1 << 30}
	_, freelist, err := c.readMeta()
	require.NoError(t, err)
	f, err := os.OpenFile(m.path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, c.pageSize), int64(freelist)*int64(c.pageSize))
	require.NoError(t, err)
	require.NoError(t, f.Close())

	for range 2 {
		_, err = tryCommit(s, func(b *Batch) { b.Put(space(2), "k", nil, AnyVersion) })
		require.ErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, m.path+" is damaged and takes no more writes")
	}
	v, err := s.Get(ctx, space(1), "key/00042")
	require.NoError(t, err)
	require.Equal(t, m.kv["key/00042"], string(v.Data))
	_ = s.Close()
	_, err = Open(filepath.Dir(m.path), Options{LockTimeout: 1})
	require.ErrorIs(t, err, ErrDamaged, "and the lock is free")
}
