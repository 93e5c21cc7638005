package memoryfiles

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/memhost/memhost/abi"
)

// longestName is the most bytes of an id that its folder's name shows.
const longestName = 80

// reserved matches names that Windows gives to devices.
var reserved = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])($|\.)`)

// folderName turns an id into the name of a folder. Different ids have different names, also on file systems that
// ignore case. Letters, digits, "_" and "-" stay, and so does "." inside; other bytes become %XX. An id with capitals,
// or one that is long or the name of a device, gets "~" and a part of its SHA-256:
//
//	user_a     user_a
//	../etc     %2E.%2Fetc
//	Ann        Ann~b74c1c5d1ee7
func folderName(id string) string {
	var out strings.Builder
	for i := range len(id) {
		c := id[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-',
			c == '.' && i > 0 && i < len(id)-1:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	name := out.String()
	if id != strings.ToLower(id) || len(name) > longestName || reserved.MatchString(name) {
		sum := sha256.Sum256([]byte(id))
		name = fmt.Sprintf("%s~%x", name[:min(len(name), longestName)], sum[:6])
	}
	return name
}

// folderOf is the folder of a scope: RUN/PERSON, with @AGENT if agents have memories of their own.
func folderOf(scope abi.MemoryScope) string {
	person := folderName(scope.PersonaID)
	if scope.AgentID != "" {
		person += "@" + folderName(scope.AgentID)
	}
	return filepath.Join(folderName(scope.RunID), person)
}

// writable reports whether a file may be written into a copy. Nothing of a memory gets into the repository, whose hooks
// are programs.
func writable(path string) bool {
	if path == "" || !filepath.IsLocal(filepath.FromSlash(path)) || strings.Contains(path, `\`) {
		return false
	}
	for part := range strings.SplitSeq(strings.ToLower(path), "/") {
		part, _, _ = strings.Cut(strings.TrimRight(part, " ."), ":") // as Windows reads names
		if part == gitFolderName || strings.HasPrefix(part, "git~") {
			return false
		}
	}
	return true
}
