package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// What a scope's state holds:
//
//	turn/<time>/<arrival>   the event as JSON; both numbers inverted, so that byte order is newest first
//	event/<event id>        the key of its turn; event#<hash> for an id too long for a key
//	                        empty after it was forgotten
//	count                   "<turns> <bytes of all of them>", and after turns were forgotten " <turns ever recorded>"
const (
	turnPrefix = "turn/"
	countKey   = "count"
	// turnKeyLength is the length of all keys of turns.
	turnKeyLength = 37
)

// turnKey is the key of a turn, which is its native id too. Arrival counts from 1.
func turnKey(at time.Time, arrival int64) string {
	return timeKey(at) + "/" + hexDigits(1<<48-arrival, 12)
}

// timeKey sorts before the keys of all turns at or before a moment, and after those of all later ones.
func timeKey(at time.Time) string {
	return turnPrefix + hexDigits(1<<40-at.Unix(), 11) + hexDigits(999_999_999-int64(at.Nanosecond()), 8)
}

// hexDigits formats n in hex, with leading zeros.
func hexDigits(n int64, digits int) string {
	s := strconv.FormatInt(n, 16)
	return strings.Repeat("0", max(0, digits-len(s))) + s
}

// eventKey returns the key of an event. Both keys and event ids may have up to 512 bytes, so a long id is hashed.
func eventKey(id string) string {
	if len(id) > 500 {
		return "event#" + sdk.Digest256(id)
	}
	return "event/" + id
}

// tally counts what a scope holds.
type tally struct {
	turns, bytes int64
	arrived      int64 // turns ever recorded, including forgotten ones
	version      int64 // of the key; 0 before the first turn
}

func readTally(c *sdk.Call) (tally, error) {
	value, version, err := c.Get(countKey)
	if err != nil || version == 0 {
		return tally{}, err
	}
	turns, bytes, _ := strings.Cut(string(value), " ")
	bytes, arrived, _ := strings.Cut(bytes, " ")
	if arrived == "" {
		arrived = turns
	}
	n := tally{version: version}
	if n.turns, err = strconv.ParseInt(turns, 10, 64); err == nil {
		n.bytes, err = strconv.ParseInt(bytes, 10, 64)
	}
	if err == nil {
		n.arrived, err = strconv.ParseInt(arrived, 10, 64)
	}
	if err != nil {
		return tally{}, unreadable(countKey)
	}
	return n, nil
}

// average returns a turn's average size in bytes.
func (n tally) average() int64 { return n.bytes / max(1, n.turns) }

func (n tally) write(c *sdk.Call) error {
	value := sdk.Itoa(n.turns) + " " + sdk.Itoa(n.bytes)
	if n.arrived != n.turns {
		value += " " + sdk.Itoa(n.arrived)
	}
	return c.Put(countKey, []byte(value), n.version)
}

func unreadable(key string) error {
	return abi.NewError(abi.CodeInternal,
		"full_history: the state under "+strconv.Quote(key)+" is not what was stored there")
}
