// Package noswitch rejects HTTP answers that switch the protocol.
//
// After "101 Switching Protocols" package net/http passes the connection to the caller, and neither the request's
// context nor the client's timeout ends a read from it. A server could block a caller in this way that did not ask for
// another protocol.
package noswitch

import (
	"errors"
	"net/http"
)

// ErrSwitched is the error for an answer that switches the protocol.
var ErrSwitched = errors.New("the server answered 101 Switching Protocols, which was not asked for")

// Refuse closes the connection of an answer that switches the protocol, and returns ErrSwitched. For any other answer
// it returns nil.
func Refuse(answer *http.Response) error {
	if answer.StatusCode != http.StatusSwitchingProtocols {
		return nil
	}
	_ = answer.Body.Close()
	return ErrSwitched
}

// Transport is Base, but rejects answers that switch the protocol.
type Transport struct{ Base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
//
// Errors: those of Base; ErrSwitched.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.Base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if err := Refuse(answer); err != nil {
		return nil, err
	}
	return answer, nil
}
