// Package noswitch refuses answers of HTTP that change the protocol.
//
// After "101 Switching Protocols" package net/http hands the connection to the caller, and neither the request's
// context nor the client's timeout ends a read of it. A server could so keep a caller that asked for no other protocol.
package noswitch

import (
	"errors"
	"net/http"
)

// ErrSwitched is the error of an answer that changes the protocol.
var ErrSwitched = errors.New("the server answered 101 Switching Protocols, which was not asked for")

// Refuse closes the connection of an answer that changes the protocol, and returns ErrSwitched. For every other answer
// it returns nil.
func Refuse(answer *http.Response) error {
	if answer.StatusCode != http.StatusSwitchingProtocols {
		return nil
	}
	_ = answer.Body.Close()
	return ErrSwitched
}

// Transport is Base without answers that change the protocol.
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
