package conversations

import "errors"

// Folders counts the logs of an agent's sessions by the folder in which each session started; "" for logs that name
// none.
//
// Errors: those of Open.
func Folders(source Source, paths []string) (map[string]int, error) {
	folders := map[string]int{}
	for _, path := range paths {
		found, _, err := find(source, path)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			folders[folderOf(f)]++
		}
	}
	return folders, nil
}

// folderLines is how many lines of a log are searched for its folder. Codex names it in the first line, Claude Code in
// the first line of a conversation, which file snapshots may precede.
const folderLines = 200

// folderOf returns the folder in which the session of a log started; "" if the log does not name it or cannot be read.
func folderOf(f file) string {
	in, err := f.open()
	if err != nil {
		return ""
	}
	defer func() { _ = in.Close() }()
	all := newLines(in)
	for range folderLines {
		var line struct {
			CWD     string `json:"cwd"`
			Payload struct {
				CWD string `json:"cwd"`
			} `json:"payload"`
		}
		if err := all.next(&line); err != nil {
			if bad := (*badLine)(nil); errors.As(err, &bad) {
				continue
			}
			return ""
		}
		if line.CWD != "" {
			return line.CWD
		}
		if line.Payload.CWD != "" {
			return line.Payload.CWD
		}
	}
	return ""
}
