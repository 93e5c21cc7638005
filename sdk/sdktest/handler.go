package sdktest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/memhost/memhost/abi"
)

// Handler uses an http.Handler as the backend. It builds each request from the manifest's route as the real host does,
// and puts the secrets' values into the headers. It does not set Reply.Empty for answers that the manifest declares
// empty; a test sets it itself, or uses package host.
func Handler(t TB, manifest []byte, secrets map[string]string, backend http.Handler) func(Request) Reply {
	t.Helper()
	routes := routesOf(t, manifest, "{}")
	return func(r Request) Reply {
		t.Helper()
		route := routes[r.Route]
		path := route.Path
		for name, value := range r.Params {
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
		}
		query := url.Values{}
		for _, q := range r.Query {
			query.Add(q.Key, q.Value)
		}
		request, err := http.NewRequest(route.Method, "http://backend"+path+"?"+query.Encode(),
			strings.NewReader(r.Body))
		if err != nil {
			t.Errorf("sdktest: route %s: %v", r.Route, err)
			return Reply{Err: abi.NewError(abi.CodeInvalidArgument, err.Error())}
		}
		for name, value := range r.Headers {
			for secret, text := range secrets {
				value = strings.ReplaceAll(value, "{{secret:"+secret+"}}", text)
			}
			request.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		backend.ServeHTTP(w, request)
		headers := map[string]string{}
		for name, values := range w.Header() {
			headers[strings.ToLower(name)] = strings.Join(values, ", ")
		}
		return Reply{Status: int64(w.Code), Headers: headers, Body: w.Body.String()}
	}
}
