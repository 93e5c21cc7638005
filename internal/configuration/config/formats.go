package config

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/internal/configuration/schema"
)

const (
	maxID   = 512  // bytes, the bound of every id in the contract
	maxText = 4096 // bytes of any other text
)

// formats are the checks that memhost.schema.json names by "format".
func formats() []schema.Format {
	ofID := fmt.Sprintf("a string of 1 to %d bytes", maxID)
	return []schema.Format{
		{Name: "text", Wants: "a string", Wrong: func(text string) string { return badText(text, maxText, "") }},
		{Name: "label", Wants: "a string", Wrong: func(text string) string { return badText(text, maxID, "") }},
		{Name: "id", Wants: ofID, Wrong: func(text string) string { return badText(text, maxID, ofID) }},
		{Name: "path", Wants: "a string", Wrong: badPath},
		{Name: "address", Wants: "host:port, like 127.0.0.1:7077", Wrong: badAddress},
		{Name: "glob", Wants: "a glob like test_*", Wrong: badGlob},
		{Name: "variable", Wants: "the name of an environment variable (letters, digits and _), not its value",
			Wrong: func(text string) string { return badText(text, maxID, "") }},
		{Name: "origin", Wants: "scheme://host:port, like http://127.0.0.1:8000", Wrong: badOrigin},
	}
}

// sound reports whether a text may enter the slot.
func sound(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

func badText(text string, most int, wants string) string {
	switch {
	case len(text) > most && wants != "":
		return fmt.Sprintf("found %d bytes, want %s", len(text), wants)
	case len(text) > most:
		return fmt.Sprintf("found %d bytes, want a string of at most %d", len(text), most)
	case !sound(text):
		return "is not valid UTF-8 text, or holds a zero byte"
	}
	return ""
}

func badPath(text string) string {
	if strings.HasPrefix(text, "~") {
		return fmt.Sprintf("found %q: ~ stands for your home only in a shell; write the path in full", text)
	}
	return badText(text, maxText, "")
}

func badAddress(text string) string {
	host, port, err := net.SplitHostPort(text)
	n, wrong := strconv.Atoi(port)
	switch {
	case err != nil || wrong != nil || strings.ContainsAny(host, "/@ "):
		return fmt.Sprintf("found %q, want host:port, like 127.0.0.1:7077", schema.BlankText(text))
	case n < 0 || n > 65535:
		return fmt.Sprintf("found %q, want a port from 0 to 65535", schema.BlankText(text))
	}
	return badText(text, maxText, "")
}

func badGlob(text string) string {
	if _, err := path.Match(text, ""); err != nil {
		return fmt.Sprintf("found %s, want a glob like test_*: a bracket or backslash in it is not complete",
			schema.Found(nil, text))
	}
	return badText(text, maxText, "")
}

// badOrigin describes what is wrong with the origin of a secret.
func badOrigin(text string) string {
	u, err := url.Parse(text)
	var wants string
	switch {
	case err != nil || u.Scheme == "" || u.Host == "" || u.Hostname() == "":
		wants = "want scheme://host:port, like http://127.0.0.1:8000"
	case u.User != nil:
		wants = "want it without user and password: the secret is what names them"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#"):
		wants = "want it without query and fragment"
	default:
		return badText(text, maxText, "")
	}
	return fmt.Sprintf("found %q, %s", schema.BlankText(text), wants)
}
