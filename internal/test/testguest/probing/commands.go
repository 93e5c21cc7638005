// Package probing is what the guest "probe" does with the text that it gets. Two modules are made of it, each with a
// shell of its own: probe for mh1 and probe_extism for Extism. README.md in probe lists the commands.
package probing

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// do runs one command and says what came of it.
func do(c *sdk.Call, command string) (string, error) {
	name, rest, _ := strings.Cut(command, " ")
	words := strings.Fields(rest)
	word := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	switch name {
	case "echo":
		return rest, nil
	case "spin":
		spin()
	case "recurse":
		return strconv.Itoa(recurse(1)), nil
	case "alloc":
		for {
			kept = append(kept, make([]byte, 16<<20))
		}
	case "nil":
		var e *abi.MemoryEvent
		return e.EventID, nil
	case "panic":
		panic(rest)
	case "exit":
		os.Exit(3)
	case "flood":
		for i := range number(word(0)) {
			c.Log(abi.LogInfo, "line "+strconv.Itoa(i)+" of a flood")
		}
	case "garbage", "zero", "notjson", "wrongtype":
		Breach = name
	case "big":
		return strings.Repeat("x", number(word(0))), nil
	case "nearest":
		return nearest(number(word(0)), 100).text, nil
	case "grow":
		kept = append(kept, make([]byte, number(word(0))))
	case "fail":
		return "", abi.NewError(abi.Code(word(0)), strings.Join(words[1:], " "))
	case "count":
		return strconv.FormatInt(calls, 10), nil
	case "tokens":
		return strconv.FormatInt(c.CountTokens(rest), 10), nil
	case "fit":
		prefix, _ := c.FitTokens(strings.TrimPrefix(rest, word(0)+" "), int64(number(word(0))))
		return prefix, nil
	case "deadline":
		return strconv.FormatInt(c.Remaining(), 10), nil
	case "now":
		return c.Now, nil
	case "scope":
		return c.Scope.RunID + "/" + c.Scope.PersonaID + "/" + c.Scope.AgentID + "/" +
			strconv.FormatInt(c.Generation, 10), nil
	case "sleep":
		time.Sleep(time.Hour)
		return "woke", nil
	case "random":
		var b [8]byte
		_, err := rand.Read(b[:])
		return hex.EncodeToString(b[:]), err
	case "config":
		config, err := c.Config()
		if err != nil {
			return "", err
		}
		return string(abi.Marshal(config)), nil
	case "log":
		c.Log(abi.LogWarn, rest)
	case "oob":
		Outside()
	case "http":
		return call(c, words)
	case "bolt":
		return query(c, words)
	case "bolt_pull":
		words = append(words, "", "")
		_, rows, err := c.Bolt(words[0], []byte(words[1]))
		return strconv.Itoa(len(rows)), err
	case "bolt_count":
		return countRows(c, words)
	case "write_in_read":
		return "", c.Put("k", []byte("v"), sdk.AnyVersion)
	case "put", "get", "del", "list", "append", "read":
		return state(c, name, words)
	}
	return name, nil
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// spins is written so that no compiler can prove the loop to be without effect.
var spins int64

func spin() {
	for {
		spins++
	}
}

// recurse overflows the stack. Not inlined: each level is to have a frame.
//
//go:noinline
//nolint:staticcheck // it does not end
func recurse(n int) int {
	var frame [64]int
	frame[n%64] = n
	return recurse(n+1) + frame[(n+1)%64]
}

// numberedText is a text made of its number.
type numberedText struct {
	text   string
	number int
	spare  [3]int
}

// garbage keeps what repeated has just allocated reachable, so that no compiler leaves it out.
var garbage []byte

// repeated is a text of 48 bytes or a few more on the heap. It leaves garbage of the same size, enough for several
// rounds of the collector. Not inlined, as nearest and lowest: the fault is one of calls.
//
//go:noinline
func repeated(n int) numberedText {
	var b []byte
	for len(b) < 48 {
		b = append(strconv.AppendInt(b, int64(n), 10), '.')
	}
	text := string(b)
	for range 3000 {
		garbage = []byte(strings.Repeat("#", 60))
	}
	return numberedText{text: text, number: n}
}

// nearest halves its way to limit, below most. What it found is in a local that an earlier turn of the loop wrote, with
// one way out that does not read it: the form of which the pinned TinyGo, unpatched, frees the memory (see
// internal/authoring/toolchain/patch.go).
//
//go:noinline
func nearest(limit, most int) numberedText {
	best := repeated(most)
	if best.number <= limit {
		return best
	}
	good, bad := 0, most
	at := most / 2
	for step := 1; bad-good > 1; step *= 2 {
		if at <= good || at >= bad {
			at = (good + bad) / 2
		}
		if next := repeated(at); next.number <= limit {
			best, good = next, at
			at += step
		} else {
			bad = at
			at -= step
		}
	}
	if good == 0 {
		return lowest(limit)
	}
	return best
}

//go:noinline
func lowest(n int) numberedText {
	for ; n > 0; n-- {
		if r := repeated(n); r.number < 3 {
			return r
		}
	}
	return numberedText{}
}

// state runs a command on the scope's state.
func state(c *sdk.Call, name string, words []string) (string, error) {
	words = append(words, "", "", "")
	switch name {
	case "put":
		expected := int64(sdk.AnyVersion)
		if words[2] != "" {
			expected = int64(number(words[2]))
		}
		return "", c.Put(words[0], []byte(words[1]), expected)
	case "get":
		value, version, err := c.Get(words[0])
		if version == 0 {
			return "absent", err
		}
		return string(value), err
	case "del":
		n, err := c.Delete(words[0])
		return strconv.FormatInt(n, 10), err
	case "append":
		seq, err := c.Append(words[0], []byte(words[1]))
		return strconv.FormatInt(seq, 10), err
	case "list":
		items, _, err := c.List(abi.StateListRequest{Prefix: words[0], Values: true})
		var b strings.Builder
		for _, i := range items {
			b.WriteString(i.Key + "=" + string(i.Value) + " ")
		}
		return b.String(), err
	default:
		entries, _, err := c.Read(abi.StateReadRequest{Log: words[0], Reverse: words[1] == "reverse"})
		var b strings.Builder
		for _, e := range entries {
			b.WriteString(strconv.FormatInt(e.Seq, 10) + "=" + string(e.Data) + " ")
		}
		return b.String(), err
	}
}

// call makes a native call.
func call(c *sdk.Call, words []string) (string, error) {
	r := abi.HTTPRequest{Route: words[0]}
	body := ""
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch {
		case key == "body":
			body = value
			sdk.Put(&r.Headers, "content-type", "application/json")
		case key == "timeout_ms":
			r.TimeoutMS, _ = strconv.ParseInt(value, 10, 64)
		case strings.HasPrefix(key, "h:"):
			sdk.Put(&r.Headers, key[2:], value)
		case strings.HasPrefix(key, "q:"):
			r.Query = append(r.Query, abi.QueryParam{Key: key[2:], Value: value})
		default:
			sdk.Put(&r.Params, key, value)
		}
	}
	head, answer, err := c.HTTP(r, []byte(body))
	if err != nil {
		return "", err
	}
	return string(abi.Marshal(head)) + " " + string(answer), nil
}

// query runs a statement.
func query(c *sdk.Call, words []string) (string, error) {
	words = append(words, "")
	head, rows, err := c.Bolt(words[0], []byte(words[1]))
	if err != nil {
		return "", err
	}
	return string(abi.Marshal(head)) + " " + string(rows), nil
}

// countRows runs a statement and walks its rows.
func countRows(c *sdk.Call, words []string) (string, error) {
	words = append(words, "")
	_, rows, err := c.Bolt(words[0], []byte(words[1]))
	if err != nil {
		return "", err
	}
	n, values := 0, 0
	err = sdk.EachRow(rows, func(row []byte) error {
		n++
		return sdk.EachColumn(row, func(_ int, d *wirejson.Decoder) error {
			values++
			return d.Skip()
		})
	})
	return strconv.Itoa(n) + " rows, " + strconv.Itoa(values) + " values", err
}

// quote makes a JSON string.
func quote(s string) abi.Raw {
	m := abi.Marshal(&abi.NativeError{Body: s})
	return abi.Raw(m[len(`{"body":`) : len(m)-1])
}
