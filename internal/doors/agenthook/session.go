package agenthook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/wholefile"
	"github.com/memhost/memhost/internal/doors/outbox"
)

// session is the folder of one session of an agent. Each hook is a separate process, so what the Stop hook needs from
// the UserPromptSubmit hook is stored on disk: one file for each prompt, so that no lock is needed.
type session struct {
	dir string
	id  string
	now func() time.Time
}

// prompt is a person's message that is not recorded yet.
type prompt struct {
	Text    string `json:"text"`
	Time    string `json:"time"` // RFC 3339 with zone
	TurnID  string `json:"turn_id,omitempty"`
	Session string `json:"session_id"`
	CWD     string `json:"cwd,omitempty"`
	// PromptID and Transcript are those of the payload.
	PromptID   string          `json:"prompt_id,omitempty"`
	Transcript string          `json:"transcript,omitempty"`
	Scope      abi.MemoryScope `json:"scope"`

	file string // the name of its file
}

// notes are what a session's hooks tell each other besides prompts. Nothing is lost without them.
type notes struct {
	// Project is that of the session's first hook. A later hook may run in another folder.
	Project string `json:"project,omitempty"`
	// Last is the last prompt, at most maxLast bytes.
	Last string `json:"last,omitempty"`
	// Crons are prompts that /loop and scheduled tasks submit.
	Crons []string `json:"crons,omitempty"`
	// Outage is set once a message to the person said that there is no memory.
	Outage bool `json:"outage,omitempty"`
}

const (
	maxLast  = 2000
	maxCrons = 100
	// promptSuffix is the suffix of a file with a prompt; notesFile is the file with the notes.
	promptSuffix = ".prompt.json"
	// turnSuffix is the suffix of an empty file that marks a recorded turn.
	turnSuffix = ".turn"
	notesFile  = "notes.json"
	// duplicateWindow is the time within which two equal prompts count as one that two hooks reported: the agent's
	// settings may contain memhost twice.
	duplicateWindow = 2 * time.Second
	// sessionIdleLimit is how long a session must be idle to count as ended.
	sessionIdleLimit = 24 * time.Hour
)

func openSession(folder, id string, now func() time.Time) (*session, error) {
	s := &session{dir: filepath.Join(folder, outbox.Digest(id)), id: id, now: now}
	return s, os.MkdirAll(s.dir, 0o700)
}

// keep writes a prompt to disk.
func (s *session) keep(p *prompt) error {
	name := fmt.Sprintf("%020d-%s%s", s.now().UnixNano(), outbox.Digest(p.Text)[:16], promptSuffix)
	return s.write(name, p)
}

// pending lists the prompts on disk, oldest first and without duplicates. files are the names of all their files.
func (s *session) pending() (prompts []prompt, files []string, err error) {
	entries, err := os.ReadDir(s.dir) // sorted, so by time
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), promptSuffix) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(s.dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another hook of the session has recorded it
		}
		if err != nil {
			return nil, nil, err
		}
		p := prompt{file: e.Name()}
		if err := json.Unmarshal(text, &p); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", filepath.Join(s.dir, e.Name()), err)
		}
		files = append(files, p.file)
		if !isRepeat(prompts, &p) {
			prompts = append(prompts, p)
		}
	}
	return prompts, files, nil
}

// upTo drops the prompts after those of a turn, because they belong to a turn that has started since. Without turn ids,
// a Stop hook ends everything that was said before it.
func upTo(prompts []prompt, files []string, turnID string) ([]prompt, []string) {
	if turnID == "" {
		return prompts, files
	}
	n := 0
	for i := range prompts {
		if prompts[i].TurnID == turnID {
			n = i + 1
		}
	}
	if n == len(prompts) {
		return prompts, files
	}
	after := prompts[n].file // names are sorted by time
	return prompts[:n], slices.DeleteFunc(files, func(name string) bool { return name >= after })
}

// isRepeat reports whether an equal prompt for the same memory came just before.
func isRepeat(prompts []prompt, p *prompt) bool {
	for i := range prompts {
		first, err := time.Parse(time.RFC3339Nano, prompts[i].Time)
		second, err2 := time.Parse(time.RFC3339Nano, p.Time)
		if err == nil && err2 == nil && prompts[i].Text == p.Text && prompts[i].Scope == p.Scope &&
			second.Sub(first) < duplicateWindow {
			return true
		}
	}
	return false
}

// claim notes that an event has the id, and reports whether no event had it before.
func (s *session) claim(id string) bool {
	f, err := os.OpenFile(filepath.Join(s.dir, outbox.Digest(id)+turnSuffix), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// remove deletes prompts from disk.
func (s *session) remove(files []string) error {
	for _, name := range files {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// notes reads the notes. Missing or damaged notes are empty.
func (s *session) notes() (n notes) {
	text, err := os.ReadFile(filepath.Join(s.dir, notesFile))
	if err != nil || json.Unmarshal(text, &n) != nil {
		return notes{}
	}
	return n
}

func (s *session) note(n notes) error {
	if len(n.Last) > maxLast {
		n.Last = strings.ToValidUTF8(n.Last[:maxLast], "")
	}
	if len(n.Crons) > maxCrons {
		n.Crons = n.Crons[len(n.Crons)-maxCrons:]
	}
	return s.write(notesFile, n)
}

// write writes a file of the session durably.
func (s *session) write(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return wholefile.WriteDurable(filepath.Join(s.dir, name), text, 0o600)
}

// end removes the session's folder, once everything is recorded.
func (s *session) end() error { return os.RemoveAll(s.dir) }

// oldSessions lists the sessions in which nothing has happened for a day.
func oldSessions(folder string, now func() time.Time) (old []*session) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		dir := filepath.Join(folder, e.Name())
		info, err := os.Stat(dir) // a folder's time is that of its last change
		if err == nil && e.IsDir() && now().Sub(info.ModTime()) > sessionIdleLimit {
			old = append(old, &session{dir: dir, now: now})
		}
	}
	return old
}
