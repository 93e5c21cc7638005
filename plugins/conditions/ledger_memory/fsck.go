package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
)

// check collects the findings of fsck.
type check struct {
	checked int64
	// events maps all stored events to whether a reached commit names them; commits are nil if they cannot be read.
	events  map[string]bool
	commits map[string]*commit
	reached map[string]bool
	// Keys of objects that are unreadable, missing, or reached by no branch, and branches whose view does not show
	// their head.
	corrupt, missing, unreachable, staleViews []string
}

// queryFsck checks every object against its id and checksum, and every chain: {ok, checked, corrupt, missing,
// unreachable, stale_views}. Unreachable objects are harmless: an import or another program left them behind.
func (l *ledger) queryFsck(p *params, answer *wirejson.Encoder) {
	p.rejectUnknown()
	c := &check{events: map[string]bool{}, commits: map[string]*commit{}, reached: map[string]bool{}}
	for item := range l.Values(eventPrefix) {
		id := strings.TrimPrefix(item.Key, eventPrefix)
		_, err := readEvent(id, item.Value)
		c.count(item.Key, err)
		c.events[id] = false
	}
	for item := range l.Values(commitPrefix) {
		id := strings.TrimPrefix(item.Key, commitPrefix)
		k, err := readCommit(id, item.Value)
		c.count(item.Key, err)
		c.commits[id] = k
	}
	for _, b := range l.branches() {
		c.follow(b.Head)
		if _, current := l.openView(b); !current {
			c.staleViews = append(c.staleViews, b.Name)
		}
	}
	c.findLoose()
	for _, keys := range []*[]string{&c.corrupt, &c.missing, &c.unreachable, &c.staleViews} {
		slices.Sort(*keys)
		*keys = slices.Compact(*keys)
	}
	ok := len(c.corrupt)+len(c.missing)+len(c.staleViews) == 0
	object.Write(answer, object.Always("ok", &ok), object.Always("checked", &c.checked),
		object.Always("corrupt", &c.corrupt), object.Always("missing", &c.missing),
		object.Always("unreachable", &c.unreachable), object.Always("stale_views", &c.staleViews))
}

func (c *check) count(key string, err error) {
	c.checked++
	if err != nil {
		c.corrupt = append(c.corrupt, key)
	}
}

// follow marks the ancestors of a branch's head.
func (c *check) follow(head string) {
	for open := []string{head}; len(open) > 0; {
		id := open[len(open)-1]
		open = open[:len(open)-1]
		if id == "" || c.reached[id] {
			continue
		}
		c.reached[id] = true
		k, there := c.commits[id]
		if !there {
			c.missing = append(c.missing, commitPrefix+id)
		}
		if k == nil {
			continue
		}
		open = append(open, k.ParentID, k.MergeParentID)
		for _, e := range k.Events {
			if _, there := c.events[e]; !there {
				c.missing = append(c.missing, eventPrefix+e)
			}
			c.events[e] = true
		}
	}
}

func (c *check) findLoose() {
	for id, used := range c.events {
		if !used {
			c.unreachable = append(c.unreachable, eventPrefix+id)
		}
	}
	for id := range c.commits {
		if !c.reached[id] {
			c.unreachable = append(c.unreachable, commitPrefix+id)
		}
	}
}
