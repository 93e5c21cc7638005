package cli

import (
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress shows the progress of long work: a bar on a terminal, elsewhere one line per minute. A nil Progress shows
// nothing.
type Progress struct {
	bar *progressbar.ProgressBar // nil: not a terminal

	out         *Output
	what        string
	total, done int
	last        time.Time
}

// Progress starts with a total number of steps; a negative total means that it is unknown.
func (o *Output) Progress(total int, what string) *Progress {
	if total == 0 {
		return nil
	}
	if !o.ErrTTY {
		return &Progress{out: o, what: strings.TrimSpace(what), total: total, last: o.Now()}
	}
	theme := progressbar.ThemeASCII
	if o.Unicode {
		theme = progressbar.Theme{Saucer: "█", SaucerHead: "█", SaucerPadding: "░", BarStart: "▕", BarEnd: "▏"}
	}
	return &Progress{bar: progressbar.NewOptions(total, progressbar.OptionSetWriter(o.screen),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetTheme(theme), progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetElapsedTime(true),
		progressbar.OptionSetPredictTime(total > 0))}
}

// Add reports n more steps.
func (p *Progress) Add(n int) {
	switch {
	case p == nil:
	case p.bar != nil:
		_ = p.bar.Add(n)
	default:
		p.line(n)
	}
}

// Describe replaces the text next to the bar.
func (p *Progress) Describe(what string) {
	switch {
	case p == nil:
	case p.bar != nil:
		p.bar.Describe(what)
	default:
		p.what = strings.TrimSpace(what)
	}
}

// line counts n steps, and prints the progress if the last line is a minute old.
func (p *Progress) line(n int) {
	p.done += n
	now := p.out.Now()
	if now.Sub(p.last) < time.Minute {
		return
	}
	p.last = now
	if p.total > 0 {
		p.out.Note("%s: %d of %d", p.what, p.done, p.total)
	} else {
		p.out.Note("%s: %d", p.what, p.done)
	}
}

// Clear removes the bar so that a line can be printed. The bar is redrawn by the next Add.
func (p *Progress) Clear() {
	if p != nil && p.bar != nil {
		_ = p.bar.Clear()
	}
}

// Finish draws the bar for the last time and leaves it on the screen.
func (p *Progress) Finish() {
	if p != nil && p.bar != nil {
		_ = p.bar.Finish()
	}
}
