package sdk

import "github.com/memhost/memhost/abi"

// decodable is a pointer to a request type of the contract.
type decodable[T any] interface {
	*T
	abi.Decodable
}

// Answer is Serve for other engines and for hosts in tests: it appends the answer to an envelope, or an error object,
// to dst.
func Answer[T any, In decodable[T], Out abi.Encodable](dst, envelope []byte, host Host, operation func(*Call, In) (Out,
	error)) (answer []byte, isError bool) {
	call, err := open(envelope, host)
	if err == nil {
		in := In(new(T))
		if len(call.body) > 0 {
			err = abi.UnmarshalOwned(call.body, in)
		}
		if err == nil {
			var out Out
			if out, err = operation(call, in); err == nil {
				return abi.AppendJSON(dst, out), false
			}
		}
	}
	return abi.AppendJSON(dst, abi.AsError(err)), true
}
