//go:build wasm && !extism

package sdk

import "unsafe"

//go:wasmimport memhost pull
func importPull(ptr unsafe.Pointer, n uint32) uint32

//go:wasmimport memhost config
func importConfig() uint64

//go:wasmimport memhost deadline
func importDeadline() int64

//go:wasmimport memhost log
func importLog(level int32, ptr unsafe.Pointer, n uint32)

//go:wasmimport memhost tokens_count
func importTokensCount(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport memhost tokens_fit
func importTokensFit(ptr unsafe.Pointer, n uint32, max int32) uint64

//go:wasmimport memhost state_get
func importStateGet(key unsafe.Pointer, keyLen uint32) uint64

//go:wasmimport memhost state_put
func importStatePut(key unsafe.Pointer, keyLen uint32, value unsafe.Pointer, valueLen uint32, expected int64) uint64

//go:wasmimport memhost state_delete
func importStateDelete(prefix unsafe.Pointer, n uint32) uint64

//go:wasmimport memhost state_list
func importStateList(request unsafe.Pointer, n uint32) uint64

//go:wasmimport memhost state_append
func importStateAppend(log unsafe.Pointer, logLen uint32, value unsafe.Pointer, valueLen uint32) uint64

//go:wasmimport memhost state_read
func importStateRead(request unsafe.Pointer, n uint32) uint64

//go:wasmimport memhost http_send
func importHTTPSend(head unsafe.Pointer, headLen uint32, body unsafe.Pointer, bodyLen uint32) uint64

//go:wasmimport memhost bolt_run
func importBoltRun(head unsafe.Pointer, headLen uint32) uint64

// wasmHost calls the module's imports. Imports that a plugin does not use are not linked, so they are absent from the
// module.
type wasmHost struct{}

func base(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

func (wasmHost) Pull(dst []byte) int          { return int(importPull(base(dst), uint32(len(dst)))) }
func (wasmHost) Config() uint64               { return importConfig() }
func (wasmHost) Deadline() int64              { return importDeadline() }
func (wasmHost) Log(level int32, text []byte) { importLog(level, base(text), uint32(len(text))) }

func (wasmHost) TokensCount(text []byte) int64 {
	return importTokensCount(base(text), uint32(len(text)))
}

func (wasmHost) TokensFit(text []byte, max int32) uint64 {
	return importTokensFit(base(text), uint32(len(text)), max)
}

func (wasmHost) StateGet(key []byte) uint64 { return importStateGet(base(key), uint32(len(key))) }

func (wasmHost) StatePut(key, value []byte, expected int64) uint64 {
	return importStatePut(base(key), uint32(len(key)), base(value), uint32(len(value)), expected)
}

func (wasmHost) StateDelete(prefix []byte) uint64 {
	return importStateDelete(base(prefix), uint32(len(prefix)))
}

func (wasmHost) StateList(request []byte) uint64 {
	return importStateList(base(request), uint32(len(request)))
}

func (wasmHost) StateAppend(log, value []byte) uint64 {
	return importStateAppend(base(log), uint32(len(log)), base(value), uint32(len(value)))
}

func (wasmHost) StateRead(request []byte) uint64 {
	return importStateRead(base(request), uint32(len(request)))
}

func (wasmHost) HTTPSend(head, body []byte) uint64 {
	return importHTTPSend(base(head), uint32(len(head)), base(body), uint32(len(body)))
}

func (wasmHost) BoltRun(head []byte) uint64 { return importBoltRun(base(head), uint32(len(head))) }
