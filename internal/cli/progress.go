package cli

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows the progress of a long command on a terminal. A nil one shows nothing.
type progress struct{ bar *progressbar.ProgressBar }

// progress begins a bar over total events, or one without an end where total is negative.
func (o *output) progress(total int, what string) *progress {
	if !o.errTTY || total == 0 {
		return nil
	}
	theme := progressbar.ThemeASCII
	if o.unicode {
		theme = progressbar.Theme{Saucer: "█", SaucerHead: "█", SaucerPadding: "░", BarStart: "▕", BarEnd: "▏"}
	}
	return &progress{progressbar.NewOptions(total, progressbar.OptionSetWriter(o.stderr),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetTheme(theme), progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetElapsedTime(true),
		progressbar.OptionSetPredictTime(total > 0))}
}

func (p *progress) add(n int) {
	if p != nil {
		_ = p.bar.Add(n)
	}
}

// clear makes room for a line of text; the bar comes back with the next add.
func (p *progress) clear() {
	if p != nil {
		_ = p.bar.Clear()
	}
}

func (p *progress) finish() {
	if p != nil {
		_ = p.bar.Finish()
	}
}
