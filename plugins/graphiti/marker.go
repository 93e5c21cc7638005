package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/sdk"
)

// marker is what is kept of a turn that a server took into its queue: enough to find it, to place it in the order of
// the scope's turns, and to tell when it was sent. As text "1 <seq> <sent ms> <event ms> <event id>", and with a job of
// the gateway's "2 <seq> <sent ms> <event ms> <job> <event id>".
type marker struct {
	// seq counts the scope's turns from 1: the queue is worked off in this order.
	seq, sentMS, eventMS int64
	// name is the event's id.
	name string
	// job is the gateway's job that carries the turn; on core only.
	job string
}

func (m marker) String() string {
	version, name := "1 ", m.name
	if m.job != "" {
		version, name = "2 ", m.job+" "+m.name
	}
	return version + sdk.Itoa(m.seq) + " " + sdk.Itoa(m.sentMS) + " " + sdk.Itoa(m.eventMS) + " " + name
}

func parseMarker(s string) (m marker, ok bool) {
	parts := strings.SplitN(s, " ", 5)
	if len(parts) < 5 || parts[0] != "1" && parts[0] != "2" {
		return marker{}, false
	}
	for i, n := range [...]*int64{&m.seq, &m.sentMS, &m.eventMS} {
		value, err := strconv.ParseInt(parts[i+1], 10, 64)
		if err != nil {
			return marker{}, false
		}
		*n = value
	}
	m.name = parts[4]
	if parts[0] == "2" {
		m.job, m.name, _ = strings.Cut(parts[4], " ")
	}
	return m, m.seq > 0 && m.name != ""
}

// lastKey is where the scope's state keeps the marker of the last turn that was taken. In a queue that is worked off in
// order it tells when all are through.
const lastKey = "last"

// readLast reads it; has is false before the scope's first turn.
func (v *visit) readLast() (m marker, has bool, err error) {
	value, version, err := v.Get(lastKey)
	if err != nil || version == 0 {
		return marker{}, false, err
	}
	m, has = parseMarker(string(value))
	return m, has, nil
}

func (v *visit) keepLast(m marker) error { return v.Put(lastKey, []byte(m.String()), sdk.AnyVersion) }

// readMarkers reads the markers of a request; of a turn that was recorded twice the later one counts.
func readMarkers(list []string) (queued []marker, unread int) {
	at := map[string]int{}
	for _, text := range list {
		m, ok := parseMarker(text)
		i, known := at[m.name]
		switch {
		case !ok:
			unread++
		case !known:
			at[m.name] = len(queued)
			queued = append(queued, m)
		case m.seq > queued[i].seq:
			queued[i] = m
		}
	}
	return queued, unread
}

func namesOf(queued []marker) []string {
	names := make([]string, len(queued))
	for i := range queued {
		names[i] = queued[i].name
	}
	return names
}
