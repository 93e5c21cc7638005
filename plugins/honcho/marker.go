package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// marker is what readiness and find_event later need to know about a write. The host keeps it with the receipt.
type marker struct {
	sentAt string
	// representation rows that the write adds to the deriver's queue: one for each message of an observed author
	rows    int64
	tokens  int64 // the tokens of those messages, as Honcho counts them
	session string
	event   string
}

const markerVersion = "1"

func (m marker) String() string {
	return strings.Join([]string{markerVersion, m.sentAt, sdk.Itoa(m.rows), sdk.Itoa(m.tokens), m.session, m.event},
		" ")
}

// parseMarker reads a marker; false if this version did not write it.
func parseMarker(text string) (m marker, ok bool) {
	parts := strings.SplitN(text, " ", 6)
	if len(parts) != 6 || parts[0] != markerVersion {
		return m, false
	}
	rows, err1 := strconv.ParseInt(parts[2], 10, 64)
	tokens, err2 := strconv.ParseInt(parts[3], 10, 64)
	if err1 != nil || err2 != nil || rows < 0 || tokens < 0 {
		return m, false
	}
	return marker{parts[1], rows, tokens, parts[4], parts[5]}, true
}

// parseMarkers returns the readable markers.
func parseMarkers(texts []string) (markers []marker) {
	for _, text := range texts {
		if m, ok := parseMarker(text); ok {
			markers = append(markers, m)
		}
	}
	return markers
}

// queueMark counts the rows that the generation's writes have added to the queue, with the time of the last one. It is
// kept in the scope's state for readiness.
type queueMark struct {
	rows   int64
	lastAt string
}

const postedKey = "posted"

// sessionPrefix is the prefix of the keys of sessions in which an observed peer has spoken, by native id. The value is
// the caller's session id, or empty for a session of repeated turns. Readiness checks for each of these sessions
// whether anything was derived from it.
const sessionPrefix = "told/"

func readPosted(c *sdk.Call) (p queueMark, err error) {
	value, version, err := c.Get(postedKey)
	if err != nil || version == 0 {
		return p, err
	}
	rows, at, _ := strings.Cut(string(value), " ")
	p.lastAt = at
	if p.rows, err = strconv.ParseInt(rows, 10, 64); err != nil {
		return p, abi.NewError(abi.CodeUnavailable, "state: "+postedKey+" is damaged")
	}
	return p, nil
}

func (p queueMark) write(c *sdk.Call) error {
	return c.Put(postedKey, []byte(sdk.Itoa(p.rows)+" "+p.lastAt), sdk.AnyVersion)
}
