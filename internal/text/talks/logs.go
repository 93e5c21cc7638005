package talks

import "errors"

// Folders counts the logs of an agent's sessions by the folder that each session began in, "" for logs that name none.
//
// Errors: as Open.
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

// folderLines is how many lines of a log are searched for its folder. Codex says it in the first one, Claude Code in the
// first one of a conversation, which snapshots of files may precede.
const folderLines = 200

// folderOf is the folder that the session of a log began in, "" where the log does not say so or cannot be read.
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
