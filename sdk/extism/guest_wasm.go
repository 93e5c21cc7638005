//go:build wasm

package extism

import (
	pdk "github.com/extism/go-pdk"

	"github.com/memhost/memhost/sdk"
)

// The imports are those of mh1, but take one of Extism's pointers instead of address and length.

//go:wasmimport extism:host/user pull
func importPull() uint64

//go:wasmimport extism:host/user config
func importConfig() uint64

//go:wasmimport extism:host/user deadline
func importDeadline() int64

//go:wasmimport extism:host/user log
func importLog(level int32, text uint64)

//go:wasmimport extism:host/user tokens_count
func importTokensCount(text uint64) int64

//go:wasmimport extism:host/user tokens_fit
func importTokensFit(text uint64, max int32) uint64

//go:wasmimport extism:host/user state_get
func importStateGet(key uint64) uint64

//go:wasmimport extism:host/user state_put
func importStatePut(key, value uint64, expected int64) uint64

//go:wasmimport extism:host/user state_delete
func importStateDelete(prefix uint64) uint64

//go:wasmimport extism:host/user state_list
func importStateList(request uint64) uint64

//go:wasmimport extism:host/user state_append
func importStateAppend(log, value uint64) uint64

//go:wasmimport extism:host/user state_read
func importStateRead(request uint64) uint64

//go:wasmimport extism:host/user http_send
func importHTTPSend(head, body uint64) uint64

//go:wasmimport extism:host/user bolt_run
func importBoltRun(head uint64) uint64

// instance lives as long as the module's memory.
var instance sdk.Memo

// guest is the host that calls the module's imports.
type guest struct{}

func guestHost() sdk.Host { return guest{} }

func input() []byte { return pdk.Input() }

func output(answer []byte) { pdk.Output(answer) }

// block copies bytes into Extism's memory for the host. The caller frees it after the call. For no bytes it returns the
// pointer 0.
type block struct{ pdk.Memory }

func lend(b []byte) block {
	if len(b) == 0 {
		return block{}
	}
	return block{pdk.AllocateBytes(b)}
}

func (b block) free() {
	if b.Offset() != 0 {
		b.Free()
	}
}

// Pull copies the whole pending result; sdk.Call never asks for less.
func (guest) Pull(dst []byte) int {
	m := pdk.FindMemory(importPull())
	if m.Length() != uint64(len(dst)) {
		return 0
	}
	m.Load(dst)
	m.Free()
	return len(dst)
}

func (guest) Config() uint64  { return importConfig() }
func (guest) Deadline() int64 { return importDeadline() }

func (guest) Log(level int32, text []byte) {
	t := lend(text)
	defer t.free()
	importLog(level, t.Offset())
}

func (guest) TokensCount(text []byte) int64 {
	t := lend(text)
	defer t.free()
	return importTokensCount(t.Offset())
}

func (guest) TokensFit(text []byte, max int32) uint64 {
	t := lend(text)
	defer t.free()
	return importTokensFit(t.Offset(), max)
}

func (guest) StateGet(key []byte) uint64 {
	k := lend(key)
	defer k.free()
	return importStateGet(k.Offset())
}

func (guest) StatePut(key, value []byte, expected int64) uint64 {
	k, v := lend(key), lend(value)
	defer k.free()
	defer v.free()
	return importStatePut(k.Offset(), v.Offset(), expected)
}

func (guest) StateDelete(prefix []byte) uint64 {
	p := lend(prefix)
	defer p.free()
	return importStateDelete(p.Offset())
}

func (guest) StateList(request []byte) uint64 {
	r := lend(request)
	defer r.free()
	return importStateList(r.Offset())
}

func (guest) StateAppend(log, value []byte) uint64 {
	l, v := lend(log), lend(value)
	defer l.free()
	defer v.free()
	return importStateAppend(l.Offset(), v.Offset())
}

func (guest) StateRead(request []byte) uint64 {
	r := lend(request)
	defer r.free()
	return importStateRead(r.Offset())
}

func (guest) HTTPSend(head, body []byte) uint64 {
	h, b := lend(head), lend(body)
	defer h.free()
	defer b.free()
	return importHTTPSend(h.Offset(), b.Offset())
}

func (guest) BoltRun(head []byte) uint64 {
	h := lend(head)
	defer h.free()
	return importBoltRun(h.Offset())
}

func (guest) Memo() *sdk.Memo { return &instance }
