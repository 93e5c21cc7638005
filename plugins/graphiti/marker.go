package main

import (
	"github.com/memhost/memhost/abi/jsontext"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/words"

	"github.com/memhost/memhost/sdk"
)

// marker is what is kept of a turn that a server took into its queue: enough to find it, to place it in the order of the scope's turns, and to tell when it
// was sent. As text: "1 <seq> <sent ms> <event ms> <event id>", and of one that the gateway has "2 <seq> <sent ms> <event ms> <job> <event id>".
type marker struct {
	// seq counts the scope's turns from 1: the queue is worked off in this order.
	seq, sentMS, eventMS int64
	name                 string
	// job is the gateway's id of the job that carries the turn; only core has jobs.
	job string
}

func (m marker) String() string {
	version, name := byte('1'), m.name
	if m.job != "" {
		version, name = '2', m.job+" "+m.name
	}
	text := append(make([]byte, 0, 64+len(name)), version)
	for _, n := range [...]int64{m.seq, m.sentMS, m.eventMS} {
		text = jsontext.AppendInt(append(text, ' '), n)
	}
	return words.View(sdk.Append(append(text, ' '), name))
}

func parseMarker(s string) (m marker, ok bool) {
	version, rest, ok1 := strings.Cut(s, " ")
	seq, rest, ok2 := strings.Cut(rest, " ")
	sent, rest, ok3 := strings.Cut(rest, " ")
	event, name, ok4 := strings.Cut(rest, " ")
	if version == "2" {
		m.job, name, ok = strings.Cut(name, " ")
	} else {
		ok = version == "1"
	}
	if !ok || !ok1 || !ok2 || !ok3 || !ok4 || name == "" {
		return marker{}, false
	}
	var errs [3]error
	m.seq, errs[0] = strconv.ParseInt(seq, 10, 64)
	m.sentMS, errs[1] = strconv.ParseInt(sent, 10, 64)
	m.eventMS, errs[2] = strconv.ParseInt(event, 10, 64)
	m.name = name
	return m, errs == [3]error{} && m.seq > 0
}

// lastKey is where the scope's state keeps the marker of the last turn that was taken. In a queue that is worked off in order it tells when all are through.
const lastKey = "last"

func readLast(c *sdk.Call) (m marker, has bool, err error) {
	value, version, err := c.Get(lastKey)
	if err != nil || version == 0 {
		return marker{}, false, err
	}
	m, has = parseMarker(string(value))
	return m, has, nil
}

func (m marker) keep(c *sdk.Call) error { return c.Put(lastKey, []byte(m.String()), sdk.AnyVersion) }
