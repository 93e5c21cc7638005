package registry

import (
	"context"
	"errors"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
)

// credentialError means that Docker's credentials could not be read.
type credentialError struct{ why string }

func (e *credentialError) Error() string {
	return "Docker's credentials for it cannot be read: " + e.why
}

// credential asks Docker's credential store, which may run a helper. It waits for a hanging helper only as long as for
// a registry. Killing the helper is not enough, because a child of it may keep its output open.
func (c *Client) credential(store auth.CredentialFunc) auth.CredentialFunc {
	type answer struct {
		auth.Credential
		err error
	}
	return func(ctx context.Context, host string) (auth.Credential, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, c.longestWait(), errors.New("the credential helper does not answer"))
		defer cancel()
		done := make(chan answer, 1)
		go func() {
			found, err := store(ctx, host)
			done <- answer{found, err}
		}()
		select {
		case <-ctx.Done():
			return auth.EmptyCredential, &credentialError{context.Cause(ctx).Error()}
		case a := <-done:
			if a.err != nil {
				return auth.EmptyCredential, &credentialError{reason(a.err)}
			}
			return a.Credential, nil
		}
	}
}

// reason describes an error without the text that oras quotes from an entry, which may contain a password.
func reason(err error) string {
	if strings.Contains(err.Error(), "invalid config format") {
		return "its entry in config.json is not base64 of USER:PASSWORD"
	}
	return err.Error()
}
