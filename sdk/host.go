package sdk

import "github.com/memhost/memhost/abi"

// Host is the raw boundary: the imports of module "memhost" as ABI.md specifies them. A packed result is read by Pull.
// The byte slices passed in belong to the caller: a Host neither changes nor keeps them.
type Host interface {
	Pull(dst []byte) int
	Config() uint64
	Deadline() int64
	Log(level int32, text []byte)
	TokensCount(text []byte) int64
	TokensFit(text []byte, max int32) uint64
	StateGet(key []byte) uint64
	StatePut(key, value []byte, expected int64) uint64
	StateDelete(prefix []byte) uint64
	StateList(request []byte) uint64
	StateAppend(log, value []byte) uint64
	StateRead(request []byte) uint64
	HTTPSend(head, body []byte) uint64
	BoltRun(head []byte) uint64
	// Memo is no import: it is the memory of the instance behind which this host stands.
	Memo() *Memo
}

// Memo keeps, for the life of an instance, what it made of its configuration. The zero value is ready.
type Memo struct {
	config   *abi.GuestConfig
	settings any
}
