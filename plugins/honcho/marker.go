package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// marker is what readiness and find_event need of a write later. The host keeps it with the receipt.
type marker struct {
	sentAt string
	// representation rows that the write puts into the deriver's queue: one for each message of an observed author
	rows    int64
	tokens  int64 // the tokens of those rows' messages, as Honcho counts them
	session string
	event   string
}

const markerVersion = "1"

func (m marker) String() string {
	return strings.Join([]string{markerVersion, m.sentAt, sdk.Itoa(m.rows), sdk.Itoa(m.tokens), m.session, m.event},
		" ")
}

// parseMarker reads a marker; false for one that this version did not write.
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

// parseMarkers reads those that can be read.
func parseMarkers(texts []string) (markers []marker) {
	for _, text := range texts {
		if m, ok := parseMarker(text); ok {
			markers = append(markers, m)
		}
	}
	return markers
}

// posted counts, over the life of the generation, the rows that its writes put into the queue, and when the last one
// was. It is a readiness mark in the scope's state.
type posted struct {
	rows   int64
	lastAt string
}

const postedKey = "posted"

// toldPrefix begins the keys of sessions in which an observed peer has spoken, by native id. The value is the session's
// own id, or empty where its turns were said again. Readiness asks of each whether anything was derived.
const toldPrefix = "told/"

func readPosted(c *sdk.Call) (p posted, err error) {
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

func (p posted) write(c *sdk.Call) error {
	return c.Put(postedKey, []byte(sdk.Itoa(p.rows)+" "+p.lastAt), sdk.AnyVersion)
}
