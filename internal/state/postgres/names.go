package postgres

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash/crc32"

	"github.com/memhost/memhost/internal/state"
)

// headBytes is the length of the part of a name that is indexed verbatim. With space and hash it stays far below 2,704
// bytes, the limit for an entry of a B-tree index.
const headBytes = 512

// name is a name as the tables store it. For "abc" it is {"abc", "", ""}.
type name struct {
	head, hash, tail []byte
}

func nameOf(s string) name {
	if len(s) <= headBytes {
		return name{head: []byte(s), hash: []byte{}, tail: []byte{}}
	}
	hash := sha256.Sum256([]byte(s[headBytes:]))
	return name{head: []byte(s[:headBytes]), hash: hash[:], tail: []byte(s[headBytes:])}
}

// tableKey is the value of column tbl for a table of the host.
func tableKey(t state.Table) []byte {
	const most = 255
	if len(t) <= most {
		return []byte(t)
	}
	hash := sha256.Sum256([]byte(t))
	return append([]byte(t[:most+1-len(hash)]), hash[:]...)
}

// whereClause builds a WHERE clause with its arguments.
type whereClause struct {
	text string
	args []any
}

// arg adds an argument and returns its placeholder, such as $3.
func (w *whereClause) arg(v any) string {
	w.args = append(w.args, v)
	return fmt.Sprintf("$%d", len(w.args))
}

func (w *whereClause) and(format string, values ...any) {
	places := make([]any, len(values))
	for i, v := range values {
		places[i] = w.arg(v)
	}
	w.text += " AND " + fmt.Sprintf(format, places...)
}

// prefix selects names that begin with p.
func (w *whereClause) prefix(p string) {
	column, part := "head", []byte(p)
	if len(p) > headBytes {
		w.and("head = %s", part[:headBytes])
		column, part = "tail", part[headBytes:]
	}
	if len(part) == 0 {
		return
	}
	w.and(column+" >= %s", part)
	if end := behind(part); end != nil {
		w.and(column+" < %s", end)
	}
}

// after selects names greater than a; the empty name excludes nothing.
func (w *whereClause) after(a string) {
	if a == "" {
		return
	}
	n := nameOf(a)
	w.and("head >= %s", n.head)
	w.and("(head > %s OR tail > %s)", n.head, n.tail)
}

// behind returns the smallest name that is greater than all names that begin with prefix; nil if there is none, because
// prefix consists of bytes 255. For "a\xff" it is "b".
func behind(prefix []byte) []byte {
	end := bytes.TrimRight(prefix, "\xff")
	if len(end) == 0 {
		return nil
	}
	end = bytes.Clone(end)
	end[len(end)-1]++
	return end
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is the checksum that is stored with data.
func sum(name string, data []byte) int64 {
	return int64(crc32.Update(crc32.Checksum([]byte(name), castagnoli), castagnoli, data))
}

// checkSum returns ErrDamaged if the data is not what was written under the name.
func checkSum(what, name string, data []byte, want int64) error {
	if sum(name, data) == want {
		return nil
	}
	if len(name) > 80 {
		name = name[:80]
	}
	return &state.Error{Kind: state.ErrDamaged, Message: fmt.Sprintf("%s %q: its checksum in the database does not fit "+
		"its content", what, name), Hint: "restore the database from a backup"}
}
