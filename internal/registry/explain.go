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

// other is the hint where a registry does not keep to what registries do.
const other = "the registry, or something on the way, changes what it sends: try another one that has it, as with " +
	"MEMHOST_MIRRORS"

// explain gives an error of a registry its code, and a hint.
func explain(r Reference, verb string, err error) error {
	wrap := func(code abi.Code, text, hint string) error {
		e := abi.WrapError(code, r.String()+": cannot "+verb+" it: "+text, err).WithHint(hint)
		e.Retryable = code == abi.CodeUnavailable
		return e
	}
	login := "`docker login " + r.Host + "` stores credentials; a credential helper that Docker's config.json names " +
		"works, too"
	later := "try again when it answers"
	if verb == "pull" {
		later = "a module that was pulled before needs no registry when it is named with its digest: " +
			Scheme + r.Host + "/" + r.Name + "@sha256:..."
	}
	changed := other
	if verb == "push" || verb == "attach something to" {
		changed = ""
	}
	var credential *credentialError
	var redirect *redirectError
	var answer *errcode.ErrorResponse
	var network *url.Error
	switch {
	case errors.As(err, &credential):
		return wrap(abi.CodeUnauthenticated, credential.Error(), "see "+r.Host+" in Docker's config.json, in "+
			"$DOCKER_CONFIG or ~/.docker; `docker-credential-NAME get` with the host as its input tries a helper")
	case errors.As(err, &redirect):
		return wrap(abi.CodeBackend, redirect.Error(), "if that is where the module is, name it: "+Scheme+
			redirect.to.Host+"/"+r.Name)
	case errors.Is(err, errdef.ErrNotFound):
		return wrap(abi.CodeNotFound, "the registry does not have it", "")
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return wrap(abi.CodeUnauthenticated, "the registry wants credentials, and there are none for it", login)
	case errors.As(err, &answer):
		switch answer.StatusCode {
		case http.StatusUnauthorized:
			return wrap(abi.CodeUnauthenticated, "the registry does not accept the credentials, or wants some", login)
		case http.StatusForbidden:
			return wrap(abi.CodeDenied, "the registry denies it to these credentials", login)
		case http.StatusNotFound:
			return wrap(abi.CodeNotFound, "the registry does not have it", "")
		}
		if answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests {
			return wrap(abi.CodeUnavailable, "the registry fails: "+answer.Error(), later)
		}
		return wrap(abi.CodeBackend, answer.Error(), changed)
	case errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, errStalled):
		return wrap(abi.CodeUnavailable, "the registry cannot be reached: "+err.Error(), later)
	}
	return wrap(abi.CodeBackend, err.Error(), changed)
}
