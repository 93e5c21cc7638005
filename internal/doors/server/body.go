package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// bodyBounds limits how many requests with bodies above a size are read and answered at a time. A smaller body takes
// little more memory than its connection.
var bodyBounds = []struct{ above, atATime int }{{64 << 10, 256}, {1 << 20, 16}}

// body reads a request's JSON body completely. The caller must call release at the end of the call, even after an
// error.
//
// Errors: statusError 415 if it is not application/json, or is compressed; too_large for many values; those of read.
func (s *Server) body(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	if _, err := checkContentType(r.Header, wire.MediaJSON); err != nil {
		return nil, func() {}, err
	}
	if body, release, err = s.read(w, r); err == nil {
		err = s.checkValues(body)
	}
	return body, release, err
}

// mounted wraps a handler: request bodies are read first, within the same limits as other bodies.
func (s *Server) mounted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, release, err := s.read(w, r)
		defer release()
		if err != nil {
			s.fail(w, r, "", err)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// read reads a request's body of any type. release frees its places, even after an error: a write continues after its
// caller has gone.
//
// Errors: too_large; rate_limited if bodyBounds is reached, or if other calls have the memory; statusError 408 if it
// does not arrive in time; invalid_argument if it breaks off.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	places, giveBack := 0, func() {}
	release = func() {
		giveBack()
		for _, of := range s.bodies[:places] {
			<-of
		}
	}
	if r.ContentLength > s.options.MaxBody {
		return nil, release, abi.NewError(abi.CodeTooLarge,
			fmt.Sprintf("the body has %d bytes, the limit is %d", r.ContentLength,
				s.options.MaxBody)).WithHint("send less at once")
	}
	var b bytes.Buffer
	bounded := http.MaxBytesReader(w, r.Body, s.options.MaxBody)
	if giveBack, err = s.takeBody(r); err != nil {
		_, _ = io.Copy(io.Discard, bounded) // otherwise a client that is still writing might not see the answer
		return nil, release, err
	}
	more := true
	for i, bound := range bodyBounds {
		// Don't allocate more than the bound for an announced length.
		b.Grow(max(int(min(r.ContentLength, int64(bound.above)))-b.Len(), 0) + bytes.MinRead)
		_, err = b.ReadFrom(io.LimitReader(bounded, int64(bound.above-b.Len())))
		if more = err == nil && b.Len() == bound.above; !more {
			break
		}
		select {
		case s.bodies[i] <- struct{}{}:
			places++
		default:
			_, _ = io.Copy(io.Discard, bounded) // otherwise a client that is still writing might not see the answer
			soon := time.Second.Milliseconds()
			e := abi.NewError(abi.CodeRateLimited, fmt.Sprintf("%d bodies of more than %d KiB are here already",
				bound.atATime, bound.above>>10)).WithReason("large_bodies")
			e.RetryAfterMS = &soon
			return nil, release, e
		}
	}
	if more {
		_, err = b.ReadFrom(bounded)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return bytes.TrimPrefix(b.Bytes(), []byte("\xEF\xBB\xBF")), release, nil // some editors write a byte order mark
	case errors.As(err, &tooLarge):
		return nil, release, abi.WrapError(abi.CodeTooLarge,
			fmt.Sprintf("the body is larger than the limit of %d bytes", s.options.MaxBody),
			err).WithHint("send less at once")
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close") // what arrives later is not the next request
		return nil, release, &statusError{abi.WrapError(abi.CodeTimeout,
			fmt.Sprintf("the body did not arrive within %s", s.options.BodyTimeout), err), http.StatusRequestTimeout}
	default:
		return nil, release, abi.WrapError(abi.CodeInvalidArgument, "the body broke off: "+err.Error(), err)
	}
}

// bytesOfValue is the minimum size of a value in a body, on average: the smallest event has 19 bytes for each of its
// values.
const bytesOfValue = 16

// checkValues limits the size of a decoded body: {} takes three bytes in a list and some hundred in memory.
//
// Errors: too_large.
func (s *Server) checkValues(body []byte) error {
	most := s.options.MaxBody / bytesOfValue
	if int64(bytes.Count(body, []byte{','})) <= most {
		return nil
	}
	if n := commas(body); n > most {
		return abi.NewError(abi.CodeTooLarge, fmt.Sprintf("the body has %d commas, the limit is %d", n, most)).
			WithHint("send less at once, or raise server.max_body_bytes")
	}
	return nil
}

// commas counts the commas of JSON outside strings, because a text may be a table.
func commas(body []byte) (n int64) {
	within := false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			within = !within
		case within && c == '\\':
			i++
		case c == ',' && !within:
			n++
		}
	}
	return n
}

// hurry limits the time for r's client to send its body, even if nothing reads it, because the server waits for the
// rest of a body before it accepts the connection's next request. The limit ends with the body, because from then on
// the server reads to notice whether the client has gone. A connection without support for deadlines cannot be slow.
func (s *Server) hurry(c *http.ResponseController, r *http.Request) {
	if r.ContentLength != 0 && c.SetReadDeadline(time.Now().Add(s.options.BodyTimeout)) == nil {
		r.Body = &hurriedBody{r.Body, c}
	}
}

type hurriedBody struct {
	io.ReadCloser
	connection *http.ResponseController
}

// Read implements io.Reader.
func (b *hurriedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.connection.SetReadDeadline(time.Time{})
	}
	return n, err
}

// checkContentType requires one of the types, and returns it. A form on another web page cannot send any of them.
func checkContentType(h http.Header, allowed ...string) (media string, err error) {
	refuse := func(message string) (string, error) {
		return "", &statusError{abi.NewError(abi.CodeInvalidArgument,
			message).WithReason("content_type").WithHint("send Content-Type: " + strings.Join(allowed, " or ")),
			http.StatusUnsupportedMediaType}
	}
	given := h.Get("Content-Type")
	media, params, err := mime.ParseMediaType(given)
	switch {
	case given == "":
		return refuse("the request has no Content-Type")
	case err != nil || !slices.Contains(allowed, media):
		return refuse(fmt.Sprintf("the body is of type %q, not %s", given, strings.Join(allowed, " or ")))
	case params["charset"] != "" && !strings.EqualFold(params["charset"], "utf-8"):
		return refuse(fmt.Sprintf("the body is in %s, not UTF-8", params["charset"]))
	case h.Get("Content-Encoding") != "" && !strings.EqualFold(h.Get("Content-Encoding"), "identity"):
		return refuse("compressed bodies are not read")
	}
	return media, nil
}
