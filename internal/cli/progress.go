package cli

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress shows the progress of a long command on a terminal. A nil one shows nothing.
type Progress struct{ bar *progressbar.ProgressBar }

// Progress begins a bar over total events, or one without an end where total is negative.
func (o *Output) Progress(total int, what string) *Progress {
	if !o.ErrTTY || total == 0 {
		return nil
	}
	theme := progressbar.ThemeASCII
	if o.Unicode {
		theme = progressbar.Theme{Saucer: "█", SaucerHead: "█", SaucerPadding: "░", BarStart: "▕", BarEnd: "▏"}
	}
	return &Progress{progressbar.NewOptions(total, progressbar.OptionSetWriter(o.screen),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetTheme(theme), progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetElapsedTime(true),
		progressbar.OptionSetPredictTime(total > 0))}
}

// Add moves the bar by n.
func (p *Progress) Add(n int) {
	if p != nil {
		_ = p.bar.Add(n)
	}
}

// Clear makes room for a line of text; the bar comes back with the next add.
func (p *Progress) Clear() {
	if p != nil {
		_ = p.bar.Clear()
	}
}

// Finish draws the bar for the last time and leaves it on the screen.
func (p *Progress) Finish() {
	if p != nil {
		_ = p.bar.Finish()
	}
}
