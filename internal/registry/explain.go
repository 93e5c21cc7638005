package registry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/memhost/memhost/abi"
)

// other is the hint for a registry that violates the protocol.
const other = "the registry, or something on the way, changes what it sends: try another one that has it, as with " +
	"MEMHOST_MIRRORS"

// explain converts a registry's error to one with a code and a hint.
func explain(r Reference, verb string, err error) error {
	code, text, hint := abi.CodeBackend, err.Error(), other
	if verb == "push" || verb == "attach something to" {
		hint = ""
	}
	var credential *credentialError
	var redirect *redirectError
	var answer *errcode.ErrorResponse
	var network *url.Error
	switch {
	case errors.As(err, &credential):
		code, text = abi.CodeUnauthenticated, credential.Error()
		hint = "see " + r.Host + " in Docker's config.json, in $DOCKER_CONFIG or ~/.docker; `docker-credential-NAME get` " +
			"with the host as its input tries a helper"
	case errors.As(err, &redirect):
		text = redirect.Error()
		hint = "if that is where the module is, name it: " + Scheme + redirect.to.Host + "/" + r.Name
	case errors.Is(err, errdef.ErrNotFound):
		code, text = abi.CodeNotFound, ""
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		code, text = abi.CodeUnauthenticated, "the registry wants credentials, and there are none for it"
	case errors.As(err, &answer):
		code, text = ofStatus(answer)
	case errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, errStalled):
		code, text = abi.CodeUnavailable, "the registry cannot be reached: "+text
	}
	switch {
	case code == abi.CodeNotFound:
		text, hint = "the registry does not have it", ""
	case code == abi.CodeDenied, code == abi.CodeUnauthenticated && credential == nil:
		hint = "`docker login " + r.Host + "` stores credentials; a credential helper that Docker's config.json names " +
			"works, too"
	case code == abi.CodeUnavailable && verb == "pull":
		hint = "a module that was pulled before needs no registry when it is named with its digest: " +
			Scheme + r.Host + "/" + r.Name + "@sha256:..."
	case code == abi.CodeUnavailable:
		hint = "try again when it answers"
	}
	e := abi.WrapError(code, r.String()+": cannot "+verb+" it: "+text, err).WithHint(hint)
	e.Retryable = code == abi.CodeUnavailable
	return e
}

// ofStatus interprets an error status.
func ofStatus(answer *errcode.ErrorResponse) (code abi.Code, text string) {
	switch status := answer.StatusCode; {
	case status == http.StatusUnauthorized:
		return abi.CodeUnauthenticated, "the registry does not accept the credentials, or wants some"
	case status == http.StatusForbidden:
		return abi.CodeDenied, "the registry denies it to these credentials"
	case status == http.StatusNotFound:
		return abi.CodeNotFound, ""
	case status >= http.StatusInternalServerError, status == http.StatusTooManyRequests:
		return abi.CodeUnavailable, "the registry fails: " + answer.Error()
	}
	return abi.CodeBackend, answer.Error()
}
