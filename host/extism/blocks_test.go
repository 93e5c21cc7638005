package extism

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBlocksAreGivenBackAndLeaveNothingBehind(t *testing.T) {
	b := newBlocks(1 << 20)
	b.open([]byte("the request"))
	assert.Equal(t, "the request", b.text(b.input.start))
	one, two := b.put([]byte("one")), b.put([]byte("two"))
	assert.Zero(t, b.put(nil), "an empty block is no block")
	assert.Equal(t, "two", b.text(two))
	size := b.Size()
	b.free(one)
	assert.Zero(t, b.length(one))
	assert.Equal(t, size, b.Size(), "the one behind it is in use")
	b.free(two)
	b.free(two)
	assert.Less(t, b.Size(), size)
	again := b.alloc(3)
	assert.Equal(t, one, again)
	assert.Equal(t, "\x00\x00\x00", b.text(again))
	b.store64(again, 0x0102030405060708)
	assert.EqualValues(t, 0x08, b.load8(again))
	b.free(12345)
	b.open(nil)
	assert.Zero(t, b.Size())
	assert.False(t, slices.ContainsFunc(b.data[:cap(b.data)], func(c byte) bool {
		return c != 0
	}), "nothing of a call is left for the next")
}
