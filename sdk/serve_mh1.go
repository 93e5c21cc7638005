//go:build !extism

package sdk

import (
	"unsafe"

	"github.com/memhost/memhost/abi"
)

// With the build tag extism these exports are left out; package sdk/extism then serves the operations.

// request and response are the instance's two buffers. The host fills request, calls one operation, and reads response
// before the next call.
var (
	request  []byte
	response []byte
)

//go:wasmexport mh_abi_1
func abiMarker() {}

//go:wasmexport mh_buffer
func buffer(size uint32) uint32 {
	if uint32(len(request)) < size || size == 0 && request == nil {
		request = nil // frees the old one first, so there are never two
		request = make([]byte, size+min(size/4, 64<<10)+64)
	}
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(request))))
}

// Serve runs one operation on the n bytes that the host wrote to the request buffer. It returns the packed pointer and
// length of the answer, which stays valid until the next call. An error becomes an error object; one that is not an
// *abi.Error gets the code internal.
func Serve[T any, In decodable[T], Out abi.Encodable](n uint32, operation func(*Call, In) (Out, error)) uint64 {
	makeRoom()
	answer, isError := Answer(response[:0], request[:n], guestHost(), operation)
	response = answer
	Rest()
	return abi.Pack(uint32(uintptr(unsafe.Pointer(unsafe.SliceData(response)))), uint32(len(response)), isError)
}
