package extism

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// decodable is a pointer to a request type of the contract.
type decodable[T any] interface {
	*T
	abi.Decodable
}

// response is the instance's buffer. An answer is copied out before the operation returns.
var response []byte

// Serve runs one operation on Extism's input and writes the answer, or an error object, to Extism's output. It returns
// the export's result: 0 for an answer, 1 for an error.
func Serve[T any, In decodable[T], Out abi.Encodable](operation func(*sdk.Call, In) (Out, error)) int32 {
	answer, isError := sdk.Answer(response[:0], input(), guestHost(), operation)
	response = answer
	output(answer)
	sdk.Rest()
	if isError {
		return 1
	}
	return 0
}
