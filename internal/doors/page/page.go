package page

import (
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/examples/demo"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

//go:embed assets
var assets embed.FS

// Modes of the page, as server.page names them.
const (
	// Off serves no page.
	Off = "off"
	// Read shows and asks, and offers no change.
	Read = "read"
	// On offers changes, too.
	On = "on"
)

const (
	codeLife    = 15 * time.Minute
	sessionLife = 12 * time.Hour
	maxSessions = 32
)

// policy is the Content-Security-Policy of every file: nothing is loaded from or sent to other places, the HTML
// contains no script, and no text can become HTML (Trusted Types without a policy).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// Page serves the page below wire.PathPage. Make one with New. It is safe for concurrent use.
type Page struct {
	mode  string
	token bool
	also  []string
	now   func() time.Time
	texts bool

	mu       sync.Mutex
	codes    map[[sha256.Size]byte]time.Time // until when each is valid
	sessions map[[sha256.Size]byte]time.Time
	offers   map[[sha256.Size]byte]offer
}

// ViewRuns is the view of evaluation runs.
const ViewRuns = "runs"

// New makes the page. token says whether the slot requires one; also names the views that not every slot has.
func New(mode string, token bool, also ...string) *Page {
	return &Page{mode: mode, token: token, also: also, now: time.Now, texts: true, codes: map[[sha256.Size]byte]time.Time{},
		sessions: map[[sha256.Size]byte]time.Time{}, offers: map[[sha256.Size]byte]offer{}}
}

// Link returns the page's address on a slot's URL. If the slot has a token, it contains a new code that works once and
// for 15 minutes.
func (p *Page) Link(slot string) string {
	link := strings.TrimSuffix(slot, "/") + wire.PathPage
	if !p.token {
		return link
	}
	code := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codes[sha256.Sum256([]byte(code))] = p.now().Add(codeLife)
	return link + "#code=" + code
}

// HideTexts keeps what people said and what the memory has of them from the page. Call it before the page is served.
func (p *Page) HideTexts() { p.texts = false }

// Hides returns denied for a route whose answers have texts, if the page hides them.
func (p *Page) Hides(route string) *abi.Error {
	if p.texts || !slices.Contains(texts(), route) {
		return nil
	}
	return abi.NewError(abi.CodeDenied, "this page shows no texts, because the slot listens off loopback").
		WithReason("page_texts").WithHint("start the slot with server.page_texts: true")
}

// texts lists the routes that answer what people said, or what the memory made of it.
func texts() []string {
	return []string{wire.PathRetrieve, wire.PathFormat, wire.PathProvenance, wire.PathNativeQuery, wire.PathArchivePage,
		wire.PathArchiveEvents, wire.PathBackup, wire.PathRunsReport, wire.PathShadowAnswers, wire.PathCompare}
}

// Admits reports whether key belongs to a session, and why the session may not send a request: a page that offers no
// change may not send one, and one that hides texts may not ask for any.
func (p *Page) Admits(key, method, route string) (known bool, refused *abi.Error) {
	if !p.knows(key) {
		return false, nil
	}
	if p.mode != On && method != http.MethodGet && (method != http.MethodPost || !slices.Contains(reads(), route)) {
		return true, abi.NewError(abi.CodeDenied, "the key of this page reads only").WithReason("page").
			WithHint("send the slot's token, or start the slot with server.page: on")
	}
	return true, p.Hides(route)
}

func (p *Page) knows(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, known := p.sessions[sha256.Sum256([]byte(key))]
	return known && p.now().Before(until)
}

// reads lists the POST routes that change nothing.
func reads() []string {
	return []string{wire.PathRetrieve, wire.PathFormat, wire.PathEventsList, wire.PathScopesList, wire.PathReadiness, wire.PathInventory,
		wire.PathProvenance, wire.PathNativeQuery, wire.PathArchivePage, wire.PathRunsReport,
		wire.PathShadowAnswers, wire.PathCompare}
}

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	name := strings.TrimPrefix(r.URL.Path, wire.PathPage)
	switch {
	case name == "session" && r.Method == http.MethodPost:
		p.exchange(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET")
		refuse(w, abi.NewError(abi.CodeInvalidArgument, "the page takes GET"), http.StatusMethodNotAllowed)
	case strings.HasPrefix(name, reportPrefix):
		p.serveReport(w, strings.TrimPrefix(name, reportPrefix))
	case name == "settings":
		answer(w, map[string]any{"mode": p.mode, "token": p.token, "views": append([]string{}, p.also...)})
	case name == exampleFile:
		serveExample(w)
	default:
		serveFile(w, name)
	}
}

// exampleFile is the example conversation, which the page offers in an empty slot.
const exampleFile = "demo.jsonl"

func serveExample(w http.ResponseWriter) {
	events, err := demo.Events()
	if err != nil {
		refuse(w, abi.AsError(err), http.StatusInternalServerError)
		return
	}
	defer func() { _ = events.Close() }()
	w.Header().Set("Content-Type", wire.MediaLines)
	_, _ = io.Copy(w, events) // an error means that the browser has gone
}

// mediaTypes returns the media types of the files by extension.
func mediaTypes() map[string]string {
	return map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
		".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
}

func serveFile(w http.ResponseWriter, name string) {
	if name == "" {
		name = "index.html"
	}
	media := mediaTypes()[path.Ext(name)]
	text, err := assets.ReadFile("assets/" + name)
	if err != nil || media == "" {
		refuse(w, abi.NewError(abi.CodeNotFound, "the page has no such file"), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", media)
	_, _ = w.Write(text) // an error means that the browser has gone
}

// exchange returns a session key for the code of a link.
func (p *Page) exchange(w http.ResponseWriter, r *http.Request) {
	if media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(media) != wire.MediaJSON {
		refuse(w, abi.NewError(abi.CodeInvalidArgument, "want Content-Type: "+wire.MediaJSON),
			http.StatusUnsupportedMediaType)
		return
	}
	var given struct {
		Code string `json:"code"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1024)).Decode(&given); err != nil {
		refuse(w, abi.NewError(abi.CodeInvalidArgument, `want {"code": "..."}`), http.StatusBadRequest)
		return
	}
	key := p.session(given.Code)
	if key == "" {
		e := abi.NewError(abi.CodeUnauthenticated, "the link was used already, or is too old").WithReason("code").
			WithHint("start the slot again for a new link, or give the slot's token")
		refuse(w, e, http.StatusUnauthorized)
		return
	}
	answer(w, map[string]any{"key": key})
}

// session uses up a code and starts a session. It returns "" for an invalid code.
func (p *Page) session(code string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	digest := sha256.Sum256([]byte(code))
	until, known := p.codes[digest]
	delete(p.codes, digest)
	now := p.now()
	if !known || !now.Before(until) {
		return ""
	}
	for old, end := range p.sessions {
		if !now.Before(end) {
			delete(p.sessions, old)
		}
	}
	if len(p.sessions) >= maxSessions {
		return ""
	}
	key := rand.Text()
	p.sessions[sha256.Sum256([]byte(key))] = now.Add(sessionLife)
	return key
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", wire.MediaJSON)
	_ = json.NewEncoder(w).Encode(v) // an error means that the browser has gone
}

func refuse(w http.ResponseWriter, e *abi.Error, status int) {
	w.Header().Set("Content-Type", wire.MediaProblem)
	w.WriteHeader(status)
	_, _ = w.Write(wire.EncodeProblem(e, status))
}
