package page_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/page"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

const token = "0123456789abcdef0123"

// door returns a slot's door with a page.
func door(t *testing.T, p *page.Page, token string) http.Handler {
	t.Helper()
	s, err := server.New(server.Options{Slot: new(servertest.Slot), Page: p, Token: token, Runs: reports{}})
	require.NoError(t, err)
	return s.Handler()
}

// reports has one report, "run".
type reports struct{}

func (reports) List() (*wire.RunList, error) {
	return &wire.RunList{Runs: []wire.Run{{Name: "run", Report: true}}}, nil
}

func (reports) Report(name string) (io.ReadCloser, error) {
	if name != "run" {
		return nil, abi.NewError(abi.CodeNotFound, "none")
	}
	return io.NopCloser(strings.NewReader("<script>a report</script>")), nil
}

func ask(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:7077"
	r.Header.Set("Content-Type", wire.MediaJSON)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestThePageIsServedUnderAStrictPolicy(t *testing.T) {
	h := door(t, page.New(page.On, true), token)
	for _, name := range []string{"", "index.html", "page.css", "page.js", "settings", "nothing.js", "../page.go"} {
		w := ask(h, "GET", wire.PathPage+name, "")
		policy := w.Header().Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'",
			"require-trusted-types-for 'script'", "trusted-types 'none'"} {
			assert.Contains(t, policy, part, name)
		}
		assert.NotContains(t, policy, "unsafe")
		assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"), name)
		assert.Equal(t, "no-referrer", w.Header().Get("Referrer-Policy"), name)
		assert.Empty(t, w.Header().Get("Set-Cookie"), name)
		assert.Equal(t, strings.HasPrefix(name, "nothing") || strings.HasPrefix(name, ".."), w.Code == 404, name)
	}
	assert.Contains(t, ask(h, "GET", wire.PathPage+"page.js", "").Header().Get("Content-Type"), "text/javascript")
	assert.Equal(t, 405, ask(h, "POST", wire.PathPage, "{}").Code)
	w := ask(h, "GET", "/", "", "Accept", "text/html")
	assert.Equal(t, strings.TrimPrefix(wire.PathPage, "/"), w.Header().Get("Location"))
	assert.Equal(t, 200, ask(h, "GET", wire.PathPage, "", "Sec-Fetch-Site", "cross-site").Code, "a link in a chat")
	assert.Equal(t, 403, ask(h, "POST", wire.PathPage+"session", "{}", "Sec-Fetch-Site", "cross-site").Code)
	assert.Equal(t, 403, ask(h, "POST", wire.PathPage+"session", "{}", "Origin", "http://evil.example").Code)
}

// TestTheFilesAskNothingOfAnybodyElse checks the served files: no address but the slot's own, no script in the HTML,
// and nothing that turns text into HTML or code.
func TestTheFilesAskNothingOfAnybodyElse(t *testing.T) {
	all := new(bytes.Buffer)
	packed := gzip.NewWriter(all)
	files := os.DirFS("assets")
	require.NoError(t, fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		require.NoError(t, err)
		_, _ = packed.Write(text)
		words := []string{"http://", "https://", "innerHTML", "InnerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
			"eval(", "new Function", "localStorage", "sessionStorage", "document.cookie", "@import", "url(", "style=",
			"javascript:"}
		switch name {
		case "preact.js": // names of kinds of elements, and what only dangerouslySetInnerHTML reaches, which no other file has
			text = regexp.MustCompile(`"http://www\.w3\.org/[\w/]+"|"dangerouslySetInnerHTML"|\bu4\.innerHTML\b`).ReplaceAll(text, nil)
		case "preact.LICENSE.txt":
			words = nil
		default:
			text = bytes.ReplaceAll(text, []byte(`xmlns="http://www.w3.org/2000/svg"`), nil) // a name, not an address
		}
		for _, word := range words {
			assert.False(t, bytes.Contains(text, []byte(word)), "%s has %s", name, word)
		}
		if strings.HasSuffix(name, ".html") {
			assert.NotRegexp(t, regexp.MustCompile(`(?i)<script(?:[^>]*)>[^<]|\son\w+=`), string(text))
		}
		return nil
	}))
	require.NoError(t, packed.Close())
	assert.Less(t, all.Len(), 120<<10, "compressed")
	t.Logf("%d bytes compressed", all.Len())
}

func TestALinkWorksOnceAndItsKeyOpensTheSlot(t *testing.T) {
	p := page.New(page.On, true)
	h := door(t, p, token)
	assert.Equal(t, 401, ask(h, "GET", wire.PathMode, "").Code)
	link := p.Link("http://127.0.0.1:7077")
	address, code, found := strings.Cut(link, "#code=")
	require.True(t, found)
	assert.Equal(t, "http://127.0.0.1:7077/page/", address)
	assert.Equal(t, 401, ask(h, "POST", wire.PathPage+"session", `{"code":"`+code+`x"}`).Code)
	assert.Equal(t, 400, ask(h, "POST", wire.PathPage+"session", `code`).Code)
	assert.Equal(t, 415, ask(h, "POST", wire.PathPage+"session", `{}`, "Content-Type", "text/plain").Code)
	w := ask(h, "POST", wire.PathPage+"session", `{"code":"`+code+`"}`)
	require.Equal(t, 200, w.Code)
	key := regexp.MustCompile(`"key":"(\w+)"`).FindStringSubmatch(w.Body.String())[1]
	assert.Equal(t, 200, ask(h, "GET", wire.PathMode, "", "Authorization", "Bearer "+key).Code)
	assert.Equal(t, 401, ask(h, "POST", wire.PathPage+"session", `{"code":"`+code+`"}`).Code, "once")
	assert.Equal(t, 401, ask(h, "GET", wire.PathMode, "", "Authorization", "Bearer "+code).Code)
	assert.Equal(t, 401, ask(door(t, page.New(page.On, true), token), "GET", wire.PathMode, "", "Authorization",
		"Bearer "+key).Code, "another process of the slot")
	assert.Equal(t, "http://x/page/", page.New(page.On, false).Link("http://x"), "no token, no code")
}

func TestAReportIsServedOnceWithAnOriginOfItsOwn(t *testing.T) {
	h := door(t, page.New(page.Read, true, page.ViewRuns), token)
	key := []string{"Authorization", "Bearer " + token}
	assert.Contains(t, ask(h, "GET", wire.PathPage+"settings", "").Body.String(), `"views":["runs"]`)
	assert.Equal(t, 401, ask(h, "GET", wire.PathRuns, "").Code)
	assert.Contains(t, ask(h, "GET", wire.PathRuns, "", key...).Body.String(), `"name":"run"`)
	assert.Equal(t, 401, ask(h, "POST", wire.PathRunsReport, `{"name":"run"}`).Code)
	assert.Equal(t, 404, ask(h, "POST", wire.PathRunsReport, `{"name":"other"}`, key...).Code)
	assert.Equal(t, 400, ask(h, "POST", wire.PathRunsReport, `{}`, key...).Code)
	var offered wire.RunReport
	w := ask(h, "POST", wire.PathRunsReport, `{"name":"run"}`, key...)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &offered))
	assert.Equal(t, 403, ask(h, "GET", offered.Path, "", "Sec-Fetch-Site", "cross-site").Code, "from elsewhere")
	w = ask(h, "GET", offered.Path, "", "Sec-Fetch-Site", "same-origin")
	require.Equal(t, 200, w.Code)
	assert.Equal(t, "<script>a report</script>", w.Body.String())
	policy := w.Header().Get("Content-Security-Policy")
	for _, part := range []string{"sandbox;", "default-src 'none'", "form-action 'none'",
		"frame-ancestors 'self'"} {
		assert.Contains(t, policy, part)
	}
	assert.NotContains(t, policy, "allow-")
	assert.NotContains(t, policy, "script-src")
	assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	assert.Equal(t, 404, ask(h, "GET", offered.Path, "").Code, "once")
}

func TestAKeyOfAReadingPageChangesNothing(t *testing.T) {
	p := page.New(page.Read, true)
	h := door(t, p, token)
	_, code, _ := strings.Cut(p.Link("http://x"), "#code=")
	w := ask(h, "POST", wire.PathPage+"session", `{"code":"`+code+`"}`)
	key := "Bearer " + regexp.MustCompile(`"key":"(\w+)"`).FindStringSubmatch(w.Body.String())[1]
	const scope = `{"run_id":"r","persona_id":"u"}`
	assert.Equal(t, 200, ask(h, "GET", wire.PathMode, "", "Authorization", key).Code)
	assert.Equal(t, 200, ask(h, "POST", wire.PathRunsReport, `{"name":"run"}`, "Authorization", key).Code)
	assert.NotEqual(t, 403, ask(h, "POST", wire.PathShadowAnswers, `{}`, "Authorization", key).Code)
	assert.NotEqual(t, 403, ask(h, "POST", wire.PathArchivePage, `{}`, "Authorization", key).Code)
	assert.Equal(t, 200, ask(h, "POST", wire.PathInventory, `{"scope":`+scope+`}`, "Authorization", key).Code)
	for _, change := range []string{"PUT " + wire.PathMode, "POST " + wire.PathSwap, "POST " + wire.PathScopesReset,
		"POST " + wire.PathEvents, "POST " + wire.PathMutations, "POST " + wire.PathFeedback, "POST " + wire.PathForget, "POST " + wire.PathPersona,
		"POST " + wire.PathScopes} {
		method, path, _ := strings.Cut(change, " ")
		assert.Equal(t, 403, ask(h, method, path, scope, "Authorization", key).Code, change)
		assert.NotEqual(t, 403, ask(h, method, path, scope, "Authorization", "Bearer "+token).Code, change)
	}
}

// TestAPageThatHidesTextsGetsNone: neither with its key nor with the slot's token; programs get them with the token.
func TestAPageThatHidesTextsGetsNone(t *testing.T) {
	p := page.New(page.On, true)
	p.HideTexts()
	h := door(t, p, token)
	_, code, _ := strings.Cut(p.Link("http://x"), "#code=")
	w := ask(h, "POST", wire.PathPage+"session", `{"code":"`+code+`"}`)
	key := "Bearer " + regexp.MustCompile(`"key":"(\w+)"`).FindStringSubmatch(w.Body.String())[1]
	for _, path := range []string{wire.PathRetrieve, wire.PathFormat, wire.PathProvenance, wire.PathNativeQuery, wire.PathArchivePage,
		wire.PathRunsReport, wire.PathShadowAnswers, wire.PathCompare} {
		w := ask(h, "POST", path, `{}`, "Authorization", key)
		assert.Equal(t, 403, w.Code, path)
		assert.Contains(t, w.Body.String(), `"reason":"page_texts"`, path)
		assert.Equal(t, 403, ask(h, "POST", path, `{}`, "Authorization", "Bearer "+token, wire.HeaderOrigin, "page").Code, path)
		assert.NotEqual(t, 403, ask(h, "POST", path, `{}`, "Authorization", "Bearer "+token).Code, path)
	}
	assert.Equal(t, 200, ask(h, "GET", wire.PathMode, "", "Authorization", key).Code)
	assert.Equal(t, 200, ask(h, "POST", wire.PathInventory, `{"scope":{"run_id":"r","persona_id":"u"}}`, "Authorization", key).Code)
}
