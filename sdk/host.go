package sdk

import "github.com/memhost/memhost/abi"

// Host is the low-level interface to the host: the imports of module "memhost" as ABI.md specifies them. Pull reads a
// packed result. The byte slices passed in belong to the caller: a Host neither changes nor keeps them.
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
	// Memo is not an import. It is the memory of the instance that uses this host.
	Memo() *Memo
}

// Memo caches, for the life of an instance, its configuration and what it derived from it. The zero value is ready to
// use.
type Memo struct {
	config   *abi.GuestConfig
	settings any
}
