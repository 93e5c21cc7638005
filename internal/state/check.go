package state

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"io"
	"os"
)

// The parts of bbolt's file format that checkStructure reads (bbolt internal/common: page.go, meta.go, bucket.go).
// Integers are in the machine's byte order, as bbolt leaves them.
//
//	page     id(8) flags(2) count(2) overflow(4), then elements, then what they point to; overflow pages follow it
//	meta     magic(4) version(4) pageSize(4) flags(4) root(8) sequence(8) freelist(8) pages(8) txid(8) fnv64a of these(8)
//	branch   for each child: pos(4) keySize(4) page(8); pos counts from the element
//	leaf     for each pair: flags(4) pos(4) keySize(4) valueSize(4); flag 1: the value is a bucket
//	bucket   root(8) sequence(8); root 0: its one page follows
const (
	pageHeader   = 16
	elementSize  = 16
	bucketHeader = 16
	metaSize     = 64

	metaMagic    = 0xED0CDAED
	metaVersion  = 2
	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	leafBucket   = 0x01
	countInIDs   = 0xFFFF
	noFreelist   = ^uint64(0)

	maxDepth = 100
)

// checkStructure walks a bbolt file without trusting it: every page that its newest meta page leads to must exist, lie
// in the file, be reached once, and have its elements within bounds and in ascending order. bbolt assumes all that; a
// page that leads back to itself, for example, would overflow the stack, which recover cannot stop. It does not read
// values.
func checkStructure(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	c := &checker{f: f, size: info.Size()}
	root, freelist, err := c.readMeta()
	if err != nil {
		return err
	}
	if have, want := c.size, int64(c.pages)*int64(c.pageSize); c.pages > uint64(c.size) || have < want {
		return damaged("it was cut off: it has %d bytes, and its %d pages of %d bytes need %d", have, c.pages,
			c.pageSize, want)
	}
	c.seen = make([]bool, c.pages)
	c.seen[0], c.seen[1] = true, true
	if err := c.tree(root, nil, nil, 0); err != nil {
		return err
	}
	if freelist == noFreelist {
		return nil
	}
	_, err = c.freelist(freelist)
	return err
}

type checker struct {
	f        io.ReaderAt
	size     int64
	pageSize int
	pages    uint64
	seen     []bool
	buffers  [][]byte // one page for each depth of the walk
}

// readMeta finds the meta page that bbolt would use: the valid one with the highest transaction id.
func (c *checker) readMeta() (root, freelist uint64, err error) {
	var txid uint64
	found := false
	use := func(at int64) {
		b := make([]byte, pageHeader+metaSize)
		if _, err := c.f.ReadAt(b, at); err != nil {
			return
		}
		m, e := b[pageHeader:], binary.NativeEndian
		sum := fnv.New64a()
		_, _ = sum.Write(m[:metaSize-8])
		if e.Uint32(m) != metaMagic || e.Uint32(m[4:]) != metaVersion || e.Uint64(m[56:]) != sum.Sum64() {
			return
		}
		if id := e.Uint64(m[48:]); !found || id > txid {
			found, txid = true, id
			c.pageSize = int(e.Uint32(m[8:]))
			root, freelist, c.pages = e.Uint64(m[16:]), e.Uint64(m[32:]), e.Uint64(m[40:])
		}
	}
	use(0)
	if found {
		use(int64(c.pageSize))
	} else {
		for shift := range 15 { // the page sizes that bbolt tries: 1 KiB to 16 MiB
			use(1024 << shift)
		}
	}
	switch {
	case !found:
		return 0, 0, damaged("neither of its two header pages is valid")
	case c.pageSize < 1024 || c.pageSize > 1<<24 || c.pages < 4:
		return 0, 0, damaged("its header says %d pages of %d bytes", c.pages, c.pageSize)
	}
	return root, freelist, nil
}

// page is a page with its overflow pages. Only its first pageSize bytes are read at first: the rest is usually one
// large value.
type page struct {
	c      *checker
	id     uint64 // 0 for a bucket's inline page
	first  []byte
	at     int64 // offset of the page in the file
	length int
	flags  uint16
	count  int
}

// claim reads a page that nothing else may lead to. Its bytes are valid until another page at the same depth is
// claimed.
func (c *checker) claim(id uint64, depth int) (*page, error) {
	if id < 2 || id >= c.pages {
		return nil, damaged("page %d is named, but there are only pages 2 to %d", id, c.pages-1)
	}
	for depth >= len(c.buffers) {
		c.buffers = append(c.buffers, make([]byte, c.pageSize))
	}
	p := &page{c: c, id: id, at: int64(id) * int64(c.pageSize), first: c.buffers[depth]}
	if _, err := c.f.ReadAt(p.first, p.at); err != nil {
		return nil, damaged("page %d: %s", id, err)
	}
	e := binary.NativeEndian
	if self := e.Uint64(p.first); self != id {
		return nil, damaged("page %d calls itself %d", id, self)
	}
	overflow := uint64(e.Uint32(p.first[12:]))
	if overflow >= c.pages-id {
		return nil, damaged("page %d has %d pages behind it, beyond the last page %d", id, overflow, c.pages-1)
	}
	for i := id; i <= id+overflow; i++ {
		if c.seen[i] {
			return nil, damaged("page %d is used twice", i)
		}
		c.seen[i] = true
	}
	p.length = (int(overflow) + 1) * c.pageSize
	p.flags, p.count = e.Uint16(p.first[8:]), int(e.Uint16(p.first[10:]))
	return p, nil
}

// bytes returns a part of the page; nil if it is out of bounds.
func (p *page) bytes(from, n int) []byte {
	switch {
	case from < 0 || n < 0 || from > p.length || n > p.length-from:
		return nil
	case from+n <= len(p.first):
		return p.first[from : from+n : from+n]
	}
	b := make([]byte, n)
	if _, err := p.c.f.ReadAt(b, p.at+int64(from)); err != nil {
		return nil
	}
	return b
}

// tree checks a page and those below it. Its keys must be in [low, high); nil means no bound.
func (c *checker) tree(id uint64, low, high []byte, depth int) error {
	if depth > maxDepth {
		return damaged("page %d lies %d pages deep", id, depth)
	}
	p, err := c.claim(id, depth)
	if err != nil {
		return err
	}
	return c.elements(p, low, high, depth)
}

func (c *checker) elements(p *page, low, high []byte, depth int) error {
	if p.flags != flagBranch && p.flags != flagLeaf {
		return damaged("page %d has type %#x, want a branch or a leaf", p.id, p.flags)
	}
	table := p.bytes(pageHeader, p.count*elementSize)
	if table == nil {
		return damaged("page %d says that it holds %d elements, more than fit", p.id, p.count)
	}
	if p.flags == flagBranch && p.count == 0 {
		return damaged("page %d leads nowhere", p.id)
	}
	key := func(i int) []byte {
		e := table[i*elementSize:]
		pos, size := binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:])
		if p.flags == flagLeaf {
			pos, size = binary.NativeEndian.Uint32(e[4:]), binary.NativeEndian.Uint32(e[8:])
		}
		if uint64(pos) > uint64(p.length) || size == 0 || uint64(size) > uint64(p.length) {
			return nil
		}
		return p.bytes(pageHeader+i*elementSize+int(pos), int(size))
	}
	var next []byte
	for i := range p.count {
		k := next
		if i == 0 {
			k = key(0)
		}
		next = high
		if i+1 < p.count {
			next = key(i + 1)
		}
		if k == nil || low != nil && i == 0 && bytes.Compare(k, low) < 0 || next != nil &&
			bytes.Compare(k, next) >= 0 || i+1 < p.count && next == nil {
			return damaged("the keys of page %d are out of bounds or out of order", p.id)
		}
		e := table[i*elementSize:]
		var err error
		if p.flags == flagBranch {
			err = c.tree(binary.NativeEndian.Uint64(e[8:]), k, next, depth+1)
		} else {
			err = c.pair(p, i, k, e, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pair checks that the value of a leaf's element is within the page, and the tree of a bucket.
func (c *checker) pair(p *page, i int, key, e []byte, depth int) error {
	flags, pos, size := binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:]),
		binary.NativeEndian.Uint32(e[12:])
	from := pageHeader + i*elementSize + int(pos) + len(key)
	if uint64(size) > uint64(p.length) || from > p.length-int(size) || flags > leafBucket {
		return damaged("the value of key %s in page %d is out of bounds", quote(string(key)), p.id)
	}
	if flags != leafBucket {
		return nil
	}
	value := p.bytes(from, int(size))
	if len(value) < bucketHeader {
		return damaged("bucket %s in page %d has %d bytes, want at least %d", quote(string(key)), p.id, len(value),
			bucketHeader)
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return c.tree(root, nil, nil, depth+1)
	}
	inline := value[bucketHeader:]
	if len(inline) < pageHeader {
		return damaged("bucket %s in page %d has neither a page of its own nor one elsewhere", quote(string(key)), p.id)
	}
	in := &page{c: c, first: inline, length: len(inline),
		flags: binary.NativeEndian.Uint16(inline[8:]), count: int(binary.NativeEndian.Uint16(inline[10:]))}
	if in.flags != flagLeaf {
		return damaged("bucket %s in page %d holds a page of type %#x, want a leaf", quote(string(key)), p.id, in.flags)
	}
	return c.elements(in, nil, nil, depth+1)
}

// freelist reads and checks the list of free pages: writing to one that is in use would destroy it.
func (c *checker) freelist(id uint64) ([]uint64, error) {
	p, err := c.claim(id, 0)
	if err != nil {
		return nil, err
	}
	if p.flags != flagFreelist {
		return nil, damaged("page %d has type %#x, want the list of free pages", id, p.flags)
	}
	from, count := pageHeader, uint64(p.count)
	if p.count == countInIDs {
		if b := p.bytes(from, 8); b != nil {
			from, count = from+8, binary.NativeEndian.Uint64(b)
		}
	}
	if count > c.pages {
		return nil, damaged("the list of free pages in page %d says %d, more than there are", id, count)
	}
	ids := p.bytes(from, int(count)*8)
	if ids == nil {
		return nil, damaged("the list of free pages in page %d says %d, more than fit", id, count)
	}
	free, last := make([]uint64, count), uint64(1)
	for i := range free {
		free[i] = binary.NativeEndian.Uint64(ids[8*i:])
		if free[i] <= last || free[i] >= c.pages || c.seen[free[i]] {
			return nil, damaged("the list of free pages in page %d names page %d, which is in use, twice there or beyond "+
				"the end", id, free[i])
		}
		last = free[i]
	}
	return free, nil
}

// listFree returns the free pages of a file whose structure is sound, and the size of a page. Pages that only the
// newest meta page does not lead to are among them. No transaction may be committed at the same time.
func listFree(f *os.File) (free []uint64, pageSize int, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	c := &checker{f: f, size: info.Size()}
	_, freelist, err := c.readMeta()
	if err != nil {
		return nil, 0, err
	}
	c.seen = make([]bool, c.pages)
	free, err = c.freelist(freelist)
	return free, c.pageSize, err
}
