package heap

import (
	"math/bits"
	"unsafe"
)

// An object is a header and behind it what was asked for, together a multiple of granule. The header has two words: the
// object's length, with the lowest bit set where nothing in it is a pointer, and a link of the list of objects that are
// yet to be looked through.
const (
	granule    = 16
	headerSize = 8
	noPointers = 1

	// perWord granules have their bits in one word of a bitmap, which has wordSize bytes.
	perWord  = 32
	wordSize = 4

	// smallest is the shortest run of free memory that is worth a place in the list.
	smallest = 256

	// large objects are cut off a run that has room for them. For a smaller one the runs of the list become, one after
	// the other, the run that objects are taken from.
	large = 2048

	// ahead is how much free memory is cleared at a time: one long fill costs less than many short ones.
	ahead = 2048
)

// arena is memory in which objects lie one behind the other, in runs that the last collection found free. At its end it
// has two bitmaps with a bit for each granule: where an object starts, and, during a collection, whether it is in use.
// Nothing else is known of free memory, so a collection costs by what is in use and not by what was allocated.
//
// Places are offsets from base. At 0 stands the head of the list of free runs, so no object is there, and 0 ends lists.
type arena struct {
	base unsafe.Pointer // 8 less than a multiple of 16, so that what is behind a header is aligned to 16
	size uintptr        // bytes for objects, and the offset of the first bitmap

	// the run that objects are taken from; others are in the list, each with the offset of the next and its own length
	cursor, limit uintptr
	wild          uintptr // the run behind all objects, up to the end, unless objects are taken from it; 0 for none
	cleared       uintptr // up to here it is zero, from cursor on
	began         uintptr // where cursor was when the run was new
	top           uintptr // no object is at or above it, but for those of the current run

	starts, marks uintptr // the bitmaps; between collections marks is zero
	pending       uintptr // list of objects in use that are yet to be looked through

	inUse uintptr // bytes, when it was last collected
	taken uintptr // bytes since, but for those of the current run
}

func (a *arena) word(at uintptr) *uint32 { return (*uint32)(unsafe.Add(a.base, at)) }

func (a *arena) get(at uintptr) uintptr { return uintptr(*a.word(at)) }

func (a *arena) set(at, value uintptr) { *a.word(at) = uint32(value) }

func (a *arena) bytes(at, n uintptr) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(a.base, at)), n)
}

// open lays the arena out from start to end.
func (a *arena) open(start unsafe.Pointer, end uintptr) {
	*a = arena{base: unsafe.Add(start, -uintptr(start)&(granule-1)+granule-headerSize)}
	a.divide(end)
	a.set(0, 0)
	clear(a.bytes(a.size, a.bitmaps()))
	a.top = granule
	a.use(granule, a.size)
}

// divide finds the places of the bitmaps below end.
func (a *arena) divide(end uintptr) {
	words := (end - uintptr(a.base)) / (granule*perWord + 2*wordSize)
	a.size = words * granule * perWord
	a.starts, a.marks = a.size, a.size+wordSize*words
}

// bitmaps is the length of both.
func (a *arena) bitmaps() uintptr { return bitmapBytes(a.size) * 2 }

// bitmapBytes is the length of a bitmap for so many bytes, up to a whole word.
func bitmapBytes(n uintptr) uintptr {
	return (n + granule*perWord - 1) / (granule * perWord) * wordSize
}

// extend adds memory up to a new end.
func (a *arena) extend(end uintptr) {
	was, starts := a.size, a.starts
	a.divide(end)
	used := bitmapBytes(was)
	copy(a.bytes(a.starts, used), a.bytes(starts, used))
	clear(a.bytes(a.starts+used, a.bitmaps()-used))
	if a.limit == was {
		a.limit = a.size
	} else if a.wild == 0 {
		a.wild = was
	}
}

// link puts a run into the list behind another, or first.
func (a *arena) link(behind, at, length uintptr) {
	a.set(at, a.get(behind))
	a.set(at+4, length)
	a.set(behind, at)
}

// use makes a free run the one that objects are taken from.
func (a *arena) use(at, end uintptr) {
	a.settle()
	a.taken += a.limit - a.cursor
	a.cursor, a.began, a.cleared, a.limit = at, at, at, end
}

// settle accounts for what the current run has given.
func (a *arena) settle() {
	a.top = max(a.top, a.cursor)
	a.taken += a.cursor - a.began
	a.began = a.cursor
}

// take allocates n bytes, header included, which is a multiple of granule; 0 says that there is no room. The memory is
// zero but for the header.
func (a *arena) take(n, flag uintptr) uintptr {
	at := a.cursor
	if n > a.limit-at {
		return a.takeElsewhere(n, flag)
	}
	end := at + n
	a.cursor = end
	if end > a.cleared {
		to := min(max(end, a.cleared+ahead), a.limit)
		clear(a.bytes(a.cleared, to-a.cleared))
		a.cleared = to
	}
	a.begin(at, n|flag)
	return at
}

// begin writes an object's header and marks its start.
func (a *arena) begin(at, head uintptr) {
	a.set(at, head)
	*a.word(a.starts + at/(granule*perWord)*wordSize) |= 1 << (at / granule % perWord)
}

// takeElsewhere allocates from another run. For a small object every run is looked at once: what is too short, and the
// rest of the current run, is left to the next collection.
func (a *arena) takeElsewhere(n, flag uintptr) uintptr {
	if n >= large {
		return a.cut(n, flag)
	}
	for at := a.get(0); at != 0; at = a.get(0) {
		length := a.get(at + 4)
		a.set(0, a.get(at))
		if length >= n {
			a.use(at, at+length)
			return a.take(n, flag)
		}
		a.taken += length
	}
	if a.wild == 0 || a.size-a.wild < n {
		return 0
	}
	a.use(a.wild, a.size)
	a.wild = 0
	return a.take(n, flag)
}

// cut allocates off the beginning of a run.
func (a *arena) cut(n, flag uintptr) uintptr {
	at := a.wild
	switch {
	case at != 0 && a.size-at >= n:
		a.wild += n
		if a.size-a.wild < smallest {
			a.wild = 0
		}
	default:
		before := uintptr(0)
		for at = a.get(0); at != 0 && a.get(at+4) < n; at = a.get(at) {
			before = at
		}
		if at == 0 {
			return 0
		}
		rest := a.get(at+4) - n
		a.set(before, a.get(at))
		if rest >= smallest {
			a.link(before, at+n, rest)
		}
	}
	a.taken += n
	a.top = max(a.top, at+n)
	clear(a.bytes(at, n))
	a.begin(at, n|flag)
	return at
}

// object is the object that a place below top is in, or 0.
func (a *arena) object(at uintptr) uintptr {
	w := at / (granule * perWord) * wordSize
	word := *a.word(a.starts + w) & (2<<(at/granule%perWord) - 1)
	for word == 0 {
		if w == 0 {
			return 0
		}
		w -= wordSize
		word = *a.word(a.starts + w)
	}
	start := (w/wordSize*perWord + uintptr(bits.Len32(word)) - 1) * granule
	if at-start >= a.get(start)&^noPointers {
		return 0
	}
	return start
}

// mark marks all that n bytes of words, which may be pointers, lead to directly. Most lead nowhere, so the loop does
// nothing but find that out.
func (a *arena) mark(start unsafe.Pointer, n uintptr) {
	const size = unsafe.Sizeof(n)
	base, top := uintptr(a.base), a.top
	// the last object found: strings that were cut from one text lead into the same one, which is far to look for
	last, length := uintptr(0), uintptr(0)
	for i := uintptr(0); i+size <= n; i += size {
		// of what is below base at is very large
		if at := *(*uintptr)(unsafe.Add(start, i)) - base; at < top && at-last >= length {
			if found := a.object(at); found != 0 {
				last, length = found, a.reach(found)
			}
		}
	}
}

// reach marks an object and returns its length.
func (a *arena) reach(at uintptr) uintptr {
	head := a.get(at)
	word, bit := a.word(a.marks+at/(granule*perWord)*wordSize), uint32(1)<<(at/granule%perWord)
	if *word&bit == 0 {
		*word |= bit
		if head&noPointers == 0 {
			a.set(at+4, a.pending)
			a.pending = at
		}
	}
	return head &^ noPointers
}

// follow marks what marked objects lead to, until nothing new is found.
func (a *arena) follow() {
	for a.pending != 0 {
		at := a.pending
		a.pending = a.get(at + 4)
		a.mark(unsafe.Add(a.base, at+headerSize), a.get(at)-headerSize)
	}
}

// sweep makes everything free that is not marked.
func (a *arena) sweep() {
	used := bitmapBytes(a.top)
	free, last, inUse := uintptr(granule), uintptr(0), uintptr(0)
	a.set(0, 0)
	for w := uintptr(0); w < used; w += wordSize {
		for word := *a.word(a.marks + w); word != 0; word &= word - 1 {
			at := (w/wordSize*perWord + uintptr(bits.TrailingZeros32(word))) * granule
			if at-free >= smallest {
				a.link(last, free, at-free)
				last = free
			}
			length := a.get(at) &^ noPointers
			free = at + length
			inUse += length
		}
	}
	a.starts, a.marks = a.marks, a.starts
	clear(a.bytes(a.marks, used))
	a.top, a.inUse, a.taken = free, inUse, 0
	a.cursor, a.limit, a.began, a.cleared, a.wild = 0, 0, 0, 0, 0
	if a.size-free >= smallest {
		a.wild = free
	}
}
