package extism

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/guest"
)

// blocks is the memory that an Extism module shares with its host: the input, the output, and the arguments of host
// functions. PDKs call it the kernel and address it by offsets. It lies outside the module, which reads and writes it 1
// or 8 bytes at a time. The host's bookkeeping is elsewhere, so a module that writes to the wrong place only damages
// its own data.
type blocks struct {
	data  []byte
	list  []block // by start
	limit uint64

	input           block
	output, failure block
	// asked is the first forbidden power that the guest asked for.
	asked string
}

type block struct {
	start, size uint64
	freed       bool
}

var _ guest.Memory = (*blocks)(nil)

// firstBlock is the offset of the first block, so that a pointer of 0 can mean no block.
const firstBlock = 16

func newBlocks(limit int64) *blocks {
	return &blocks{limit: uint64(min(limit, math.MaxUint32))}
}

// open starts a call: all blocks of the previous call are freed.
func (b *blocks) open(input []byte) {
	if cap(b.data) > guest.MaxKeptBuffer {
		b.data = nil
	}
	clear(b.data)
	*b = blocks{data: b.data[:0], list: b.list[:0], limit: b.limit}
	if len(input) > 0 {
		start := b.alloc(uint64(len(input)))
		copy(b.data[start:], input)
		b.input = b.list[0]
	}
}

// Size implements guest.Memory.
func (b *blocks) Size() uint32 { return uint32(len(b.data)) }

// Read implements guest.Memory: it returns a view that is valid until the next block is allocated.
func (b *blocks) Read(ptr, n uint32) ([]byte, bool) {
	from, to := uint64(ptr), uint64(ptr)+uint64(n)
	if to > uint64(len(b.data)) {
		return nil, false
	}
	return b.data[from:to:to], true
}

// alloc allocates a block. The pointer of an empty block is 0.
func (b *blocks) alloc(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	start := max(firstBlock, uint64(len(b.data)))
	if n > b.limit || start+n > b.limit {
		panic(abi.NewError(abi.CodeTooLarge, fmt.Sprintf(
			"the module asked for %d bytes of Extism's memory, in which %d of %d are in use", n, len(b.data), b.limit)).
			WithHint("free what is not needed any more, read smaller pages, or raise limits.memory_bytes"))
	}
	end := (start + n + 7) &^ 7 // so that 8 bytes can be read at its end
	b.data = slices.Grow(b.data, int(end)-len(b.data))[:end]
	b.list = append(b.list, block{start: start, size: n})
	return start
}

// free frees a block. Its space is reused once the blocks after it are free, too.
func (b *blocks) free(start uint64) {
	if i, ok := b.find(start); ok {
		b.list[i].freed = true
	}
	for n := len(b.list); n > 0 && b.list[n-1].freed; n = len(b.list) {
		clear(b.data[b.list[n-1].start:])
		b.data, b.list = b.data[:b.list[n-1].start], b.list[:n-1]
	}
}

func (b *blocks) find(start uint64) (int, bool) {
	i, ok := slices.BinarySearchFunc(b.list, start, func(e block, start uint64) int {
		switch {
		case e.start < start:
			return -1
		case e.start > start:
			return 1
		}
		return 0
	})
	return i, ok && !b.list[i].freed
}

// length is the size of a block, 0 for a pointer to no block.
func (b *blocks) length(start uint64) uint64 {
	if i, ok := b.find(start); ok {
		return b.list[i].size
	}
	return 0
}

// block returns the whole block of a pointer that was passed to a host function.
func (b *blocks) block(start uint64) block {
	if start == 0 {
		return block{}
	}
	i, ok := b.find(start)
	if !ok {
		panic(guest.Breach(fmt.Sprintf(
			"host call with the pointer %#x, outside the memory: Extism knows no block there", start)))
	}
	return b.list[i]
}

func (b *blocks) text(start uint64) string {
	k := b.block(start)
	return string(b.data[k.start : k.start+k.size])
}

// put allocates a block with a text.
func (b *blocks) put(text []byte) uint64 {
	start := b.alloc(uint64(len(text)))
	copy(b.data[start:], text)
	return start
}

// span returns a range that the guest named, or a breach if it is out of bounds.
func (b *blocks) span(start, n uint64) []byte {
	if start > uint64(len(b.data)) || n > uint64(len(b.data))-start {
		panic(guest.Breach(fmt.Sprintf("%d bytes at %#x, outside the memory of %d bytes that Extism has", n, start,
			len(b.data))))
	}
	return b.data[start : start+n]
}

func (b *blocks) load8(at uint64) uint64      { return uint64(b.span(at, 1)[0]) }
func (b *blocks) load64(at uint64) uint64     { return binary.LittleEndian.Uint64(b.span(at, 8)) }
func (b *blocks) store8(at uint64, v byte)    { b.span(at, 1)[0] = v }
func (b *blocks) store64(at uint64, v uint64) { binary.LittleEndian.PutUint64(b.span(at, 8), v) }

// inputAt returns an address in the input, given as an offset from its start.
func (b *blocks) inputAt(at, n uint64) uint64 {
	if room := (b.input.size + 7) &^ 7; at > room || n > room-at {
		panic(guest.Breach(fmt.Sprintf("%d bytes at %d, outside the input of %d bytes", n, at, b.input.size)))
	}
	return b.input.start + at
}
