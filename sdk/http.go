package sdk

import "github.com/memhost/memhost/abi"

// HTTP sends a request by one of the manifest's routes. Every answer of the backend is returned with a nil error, 3xx,
// 4xx and 5xx too. Errors: denied, timeout, unavailable, too_large, read_only; then no answer was received.
//
// A header that the manifest declares for a secret may hold {{secret:NAME}}; the host puts the value in.
func (c *Call) HTTP(r abi.HTTPRequest, body []byte) (*abi.HTTPResponse, []byte, error) {
	head := new(abi.HTTPResponse)
	answer, err := c.take(c.host.HTTPSend(abi.Marshal(&r), body), head)
	if err != nil {
		return nil, nil, err
	}
	return head, answer, nil
}
