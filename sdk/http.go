package sdk

import "github.com/memhost/memhost/abi"

// HTTP sends a request by one of the manifest's routes. Every answer of the backend is returned with a nil error,
// including 3xx, 4xx and 5xx. Errors: denied, timeout, unavailable, too_large, read_only; in these cases there is no
// answer.
//
// A header that the manifest declares for a secret may contain {{secret:NAME}}, which the host replaces by the value.
func (c *Call) HTTP(r abi.HTTPRequest, body []byte) (*abi.HTTPResponse, []byte, error) {
	head := new(abi.HTTPResponse)
	answer, err := c.take(c.host.HTTPSend(abi.Marshal(&r), body), head)
	if err != nil {
		return nil, nil, err
	}
	return head, answer, nil
}
