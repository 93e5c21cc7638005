package host

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/guest"
)

// GuestInterceptor wraps every operation of every guest, and may change its request and answer. enter calls the
// operation; the interceptor may call it never, once or several times. An answer is valid until the next enter.
type GuestInterceptor func(envelope *abi.Envelope, enter EnterGuest) (answer []byte, isError bool, err error)

// EnterGuest calls the operation with an envelope.
type EnterGuest = func(*abi.Envelope) (answer []byte, isError bool, err error)

// interceptedStarter starts instances whose calls go through an interceptor.
type interceptedStarter struct {
	guest.Starter
	intercept GuestInterceptor
}

// Start implements guest.Starter.
func (s *interceptedStarter) Start(ctx context.Context, c *guest.Call) (guest.Instance, error) {
	in, err := s.Starter.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	return &interceptedInstance{in, s.intercept}, nil
}

type interceptedInstance struct {
	guest.Instance
	intercept GuestInterceptor
}

// Enter implements guest.Instance.
func (in *interceptedInstance) Enter(ctx context.Context, c *guest.Call, envelope *abi.Envelope) ([]byte, bool, error) {
	return in.intercept(envelope, func(e *abi.Envelope) ([]byte, bool, error) { return in.Instance.Enter(ctx, c, e) })
}
