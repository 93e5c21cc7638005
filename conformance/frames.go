package conformance

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
)

var frameLabel = regexp.MustCompile(`(?:^|\n)m([0-9]+)[ \n]`)

// frameLabels compares the labels of a compact context with the evidence. A module from before there were frames writes
// none.
func (b *bench) frameLabels(q question) outcome {
	if q.noAnswer != nil {
		return *q.noAnswer
	}
	config := b.kit.target.Provider
	if config.Frame != abi.FrameCompact && (config.Frame != "" || config.Profile == abi.ProfileSourceDesign) {
		return notChecked("the frame is not compact")
	}
	r, err := b.retrieve(q.request(abi.ContextBudget{}))
	if err != nil {
		return refused("retrieve", err)
	}
	if !frameLabel.MatchString(r.FormattedContext) {
		return notChecked("the context has no labels: it is of a module from before there were any")
	}
	n, labelled := 0, map[int]bool{}
	for i, e := range r.Evidence {
		if e.Shown == nil {
			continue
		}
		n++
		before := r.FormattedContext[:e.Shown.Start]
		found := frameLabel.FindAllStringSubmatch(before, -1)
		if len(found) == 0 {
			return failed("evidence %d is shown at byte %d, and no label is before it", i, e.Shown.Start)
		}
		label, _ := strconv.Atoi(found[len(found)-1][1])
		if label != n || labelled[label] {
			return failed("evidence %d is the %d. that is shown, and its label is m%d", i, n, label)
		}
		labelled[label] = true
	}
	return passed("%d labels", n)
}

// frame checks the counts of the trace.
func (b *bench) frame(q question) outcome {
	if q.noAnswer != nil {
		return *q.noAnswer
	}
	all, err := b.retrieve(q.request(abi.ContextBudget{}))
	if err != nil {
		return refused("retrieve", err)
	}
	t := all.Trace
	if t.FrameTokens == nil || t.TokenCount == nil || all.FormattedContext == "" {
		return notChecked("the trace has no frame_tokens")
	}
	shown := int64(0)
	for _, e := range all.Evidence {
		if e.Shown != nil {
			shown += e.Shown.End - e.Shown.Start
		}
	}
	switch {
	case *t.FrameTokens <= 0:
		return failed("frame_tokens is %d, and the context has an element around its items", *t.FrameTokens)
	case *t.FrameTokens > *t.TokenCount:
		return failed("frame_tokens is %d of %d tokens", *t.FrameTokens, *t.TokenCount)
	case shown > 40 && *t.FrameTokens == *t.TokenCount:
		return failed("frame_tokens is %d, all of the context, of which %d bytes are items' own words", *t.FrameTokens, shown)
	}
	tight := abi.ContextBudget{MaxTokens: limit(max(1, *t.TokenCount-2))}
	less, err := b.retrieve(q.request(tight))
	if err != nil {
		return refused("retrieve", err)
	}
	again, err := b.slot.FormatContext(b.ctx, &abi.FormatRequest{Result: *less, Budget: tight, Scope: q.scope})
	if err != nil {
		return refused("format_context", err)
	}
	if strings.TrimSpace(less.FormattedContext) != "" && len(less.Evidence) == len(all.Evidence) &&
		shownItems(less) < shownItems(all) {
		if less.Trace.Truncated == nil || !*less.Trace.Truncated {
			return failed("max_tokens left items out, and the trace does not say truncated")
		}
		if !again.Truncated {
			return failed("max_tokens left items out, and format_context does not say truncated")
		}
	}
	return passed("%d of %d tokens", *t.FrameTokens, *t.TokenCount)
}

func shownItems(r *abi.RetrieveResult) (n int) {
	for _, e := range r.Evidence {
		if e.Shown != nil {
			n++
		}
	}
	return n
}
