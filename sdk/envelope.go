package sdk

import "github.com/memhost/memhost/abi"

// open reads the host's request. The call's body refers to the request buffer, which is not overwritten until the guest
// is entered again.
func open(data []byte, host Host) (*Call, error) {
	e := new(abi.Envelope)
	if err := abi.Unmarshal(data, e); err != nil {
		return nil, abi.WrapError(abi.CodeInternal, "the host's request: "+err.Error(), err)
	}
	c := NewCall(host, e)
	c.body = e.Body
	return c, nil
}
