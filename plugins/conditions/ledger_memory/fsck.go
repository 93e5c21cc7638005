package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/sdk"
)

// queryFsck reads every object and checks it against its id and checksum, and every chain: {checked, ok, corrupt, missing, unreachable, stale_views}.
// Unreachable objects do no harm: they are what an import or another program left behind.
func (l *ledger) queryFsck(p *params) ([]byte, error) {
	if err := p.done(); err != nil {
		return nil, err
	}
	var corrupted, lost, views []string
	checked := int64(0)
	events, commits := map[string]bool{}, map[string]*commit{}
	if err := l.each(eventPrefix, func(i sdk.Item) error {
		id := strings.TrimPrefix(i.Key, eventPrefix)
		checked++
		events[id] = false
		if _, err := readEvent(id, i.Value); err != nil {
			corrupted = append(corrupted, i.Key)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	reached := map[string]bool{}
	if err := l.each(commitPrefix, func(i sdk.Item) error {
		id := strings.TrimPrefix(i.Key, commitPrefix)
		checked++
		k, err := readCommit(id, i.Value)
		if err != nil {
			corrupted = append(corrupted, i.Key)
			k = nil
		}
		commits[id] = k
		return nil
	}); err != nil {
		return nil, err
	}
	list, err := l.branches()
	if err != nil {
		return nil, err
	}
	var open []string
	for _, b := range list {
		open = append(open, b.Head)
		if _, err := l.viewOf(b); err != nil {
			views = append(views, b.Name)
		}
	}
	for len(open) > 0 {
		id := open[len(open)-1]
		open = open[:len(open)-1]
		if id == "" || reached[id] {
			continue
		}
		reached[id] = true
		k, there := commits[id]
		if !there {
			lost = append(lost, commitPrefix+id)
		}
		if k == nil {
			continue
		}
		open = append(open, k.ParentID, k.MergeParentID)
		for _, e := range k.Events {
			if _, there := events[e]; !there {
				lost = append(lost, eventPrefix+e)
			}
			events[e] = true
		}
	}
	var loose []string
	for id, used := range events {
		if !used && !slices.Contains(lost, eventPrefix+id) {
			loose = append(loose, eventPrefix+id)
		}
	}
	for id := range commits {
		if !reached[id] {
			loose = append(loose, commitPrefix+id)
		}
	}
	ok := "true"
	if len(corrupted)+len(lost)+len(views) > 0 {
		ok = "false"
	}
	out := append(append([]byte(`{"ok":`), ok...), `,"checked":`...)
	out = append(out, sdk.Number(checked)...)
	for _, part := range []struct {
		name string
		keys []string
	}{{"corrupt", corrupted}, {"missing", lost}, {"unreachable", loose}, {"stale_views", views}} {
		slices.Sort(part.keys)
		out = appendTexts(append(appendString(append(out, ','), part.name), ':'), slices.Compact(part.keys))
	}
	return append(out, '}'), nil
}

func appendTexts(b []byte, texts []string) []byte {
	b = append(b, '[')
	for i, t := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, t)
	}
	return append(b, ']')
}
