package cli

import (
	"context"

	"github.com/memhost/memhost/host/report"
)

// NothingKept is the warning for a person who records into a provider that keeps nothing.
func NothingKept(provider string) string {
	return Printable(provider) + " serves, which keeps nothing: what is recorded is lost. `memhost swap recall`, or " +
		"another of `memhost providers`, keeps it from then on"
}

// WarnIfNothingKept warns once if the slot's provider keeps nothing.
func (d *Door) WarnIfNothingKept(ctx context.Context, o *Output) {
	if c, err := d.Capabilities(context.WithoutCancel(ctx)); err == nil && report.KeepsNothing(c) {
		o.Note("  warning: %s", NothingKept(c.Provider))
	}
}

// Serving returns the capabilities of the slot of the configuration, or those that it will have when it is started
// again: nil if they are unknown. Nothing is opened or changed.
func (a *App) Serving(ctx context.Context) *report.Capabilities {
	ctx, cancel := context.WithTimeout(ctx, AnswerWithin)
	defer cancel()
	if server := a.ServerNamed(); server != "" {
		d, err := a.Dial(server)
		if err != nil {
			return nil
		}
		defer d.Close()
		c, err := d.Capabilities(ctx)
		if err != nil {
			return nil
		}
		return c
	}
	c, err := a.Settings()
	if err != nil {
		return nil
	}
	if d, err := a.Running(ctx, c); err == nil && d != nil {
		defer d.Close()
		if of, err := d.Capabilities(ctx); err == nil {
			return of
		}
		return nil
	}
	last := lastServed(c)
	if name, word, _ := c.Block(); last == nil || last.Provider != name && wordOf(last) == word {
		return nil
	}
	return &last.Capabilities
}
