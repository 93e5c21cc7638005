package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/sdk"
)

// marker holds what is needed to find a turn that a server has queued, to order it among the scope's turns, and to know
// when it was sent. Its text is "1 <seq> <sent ms> <event ms> <event id>", or with a job of the gateway "2 <seq> <sent
// ms> <event ms> <job> <event id>".
type marker struct {
	// seq counts the scope's turns from 1; the queue is processed in this order.
	seq, sentMS, eventMS int64
	// name is the event's id.
	name string
	// job is the gateway's job for the turn; on core only.
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

// lastKey is the key of the scope's state with the marker of the last accepted turn. In a queue that is processed in
// order, its arrival means that all have arrived.
const lastKey = "last"

// readLast reads that marker; has is false before the scope's first turn.
func (v *scopedCall) readLast() (m marker, has bool, err error) {
	value, version, err := v.Get(lastKey)
	if err != nil || version == 0 {
		return marker{}, false, err
	}
	m, has = parseMarker(string(value))
	return m, has, nil
}

func (v *scopedCall) keepLast(m marker) error {
	return v.Put(lastKey, []byte(m.String()), sdk.AnyVersion)
}

// readMarkers reads the markers of a request; for a turn that was recorded twice, the later marker counts.
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
