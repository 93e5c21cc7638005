package page

import (
	"crypto/rand"
	"crypto/sha256"
	"io"
	"net/http"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// Reports of evaluations are files in an operator's folder, so they may contain any script. They are shown in a frame
// with its own origin, which cannot read or call the slot, and the page's frame-src prevents the frame from navigating
// elsewhere.

const (
	reportPrefix = "report/"
	offerLife    = time.Minute
	maxOffers    = 32
)

// reportPolicy lets a report show its text, styles and pictures. It runs no scripts, because no policy keeps scripts
// from WebRTC, and so from the network.
const reportPolicy = "sandbox; default-src 'none'; " +
	"style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

// offer is a report that may be fetched once.
type offer struct {
	open  func() (io.ReadCloser, error)
	until time.Time
}

// Offer serves a report once, for a minute, at the path that it returns, because a frame cannot send a token. Of more
// than 32 offers the one that expires first is withdrawn.
func (p *Page) Offer(open func() (io.ReadCloser, error)) string {
	ticket := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	oldest := sha256.Sum256([]byte(ticket))
	p.offers[oldest] = offer{open, now.Add(offerLife)}
	for key, o := range p.offers {
		if !now.Before(o.until) {
			delete(p.offers, key)
		} else if o.until.Before(p.offers[oldest].until) {
			oldest = key
		}
	}
	if len(p.offers) > maxOffers {
		delete(p.offers, oldest)
	}
	return wire.PathPage + reportPrefix + ticket
}

// serveReport answers with the report of a ticket, and uses the ticket up.
func (p *Page) serveReport(w http.ResponseWriter, ticket string) {
	key := sha256.Sum256([]byte(ticket))
	p.mu.Lock()
	o, known := p.offers[key]
	delete(p.offers, key)
	p.mu.Unlock()
	if !known || !p.now().Before(o.until) {
		refuse(w, abi.NewError(abi.CodeNotFound, "this report was shown already, or was offered too long ago").
			WithHint("open it again on the page"), http.StatusNotFound)
		return
	}
	report, err := o.open()
	if err != nil {
		refuse(w, abi.AsError(err), http.StatusNotFound)
		return
	}
	defer report.Close()
	h := w.Header()
	h.Set("Content-Security-Policy", reportPolicy)
	h.Set("Content-Type", mediaTypes()[".html"])
	_, _ = io.Copy(w, report) // an error means that the browser has gone
}
