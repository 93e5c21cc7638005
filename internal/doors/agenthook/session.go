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

// session is the folder of one session of an agent. Each hook is a process of its own, so what the Stop hook needs of
// the UserPromptSubmit hook is kept on disk: one file for each prompt, which needs no lock.
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

// notes are what a session's hooks pass to each other besides prompts. Without them nothing is lost.
type notes struct {
	// Project is that of the session's first hook: a later one may run in another folder.
	Project string `json:"project,omitempty"`
	// Last is the last prompt, at most maxLast bytes.
	Last string `json:"last,omitempty"`
	// Crons are prompts that /loop and scheduled tasks submit.
	Crons []string `json:"crons,omitempty"`
	// Outage: the person has been told that there is no memory.
	Outage bool `json:"outage,omitempty"`
}

const (
	maxLast  = 2000
	maxCrons = 100
	// promptSuffix ends the name of a file with a prompt, notesFile is the name of the file with notes.
	promptSuffix = ".prompt.json"
	// turnSuffix ends the name of an empty file that stands for a turn that was recorded.
	turnSuffix = ".turn"
	notesFile  = "notes.json"
	// together is within what time two equal prompts are one, reported by two hooks: the agent's settings may have memhost
	// twice.
	together = 2 * time.Second
	// forgotten is after what time a session that did not end is taken for ended.
	forgotten = 24 * time.Hour
)

func openSession(folder, id string, now func() time.Time) (*session, error) {
	s := &session{dir: filepath.Join(folder, outbox.Digest(id)), id: id, now: now}
	return s, os.MkdirAll(s.dir, 0o700)
}

// keep puts a prompt on disk.
func (s *session) keep(p *prompt) error {
	name := fmt.Sprintf("%020d-%s%s", s.now().UnixNano(), outbox.Digest(p.Text)[:16], promptSuffix)
	return s.write(name, p)
}

// pending lists the prompts on disk, oldest first, each once. files are the names of all their files.
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
		if !toldBefore(prompts, &p) {
			prompts = append(prompts, p)
		}
	}
	return prompts, files, nil
}

// upTo cuts the prompts after those of a turn: they are of a turn that has begun since. An agent without turn ids ends
// with its Stop hook whatever was said before.
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
	after := prompts[n].file // names are in the order of time
	return prompts[:n], slices.DeleteFunc(files, func(name string) bool { return name >= after })
}

// toldBefore reports whether an equal prompt came just before, for the same memory.
func toldBefore(prompts []prompt, p *prompt) bool {
	for i := range prompts {
		first, err := time.Parse(time.RFC3339Nano, prompts[i].Time)
		second, err2 := time.Parse(time.RFC3339Nano, p.Time)
		if err == nil && err2 == nil && prompts[i].Text == p.Text && prompts[i].Scope == p.Scope &&
			second.Sub(first) < together {
			return true
		}
	}
	return false
}

// claim notes that an event has the id, and reports whether none had it before.
func (s *session) claim(id string) bool {
	f, err := os.OpenFile(filepath.Join(s.dir, outbox.Digest(id)+turnSuffix), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// remove takes prompts off the disk.
func (s *session) remove(files []string) error {
	for _, name := range files {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// notes reads the notes. Where they are missing or damaged there are none.
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

// write writes a file of the session. It is on disk when write returns.
func (s *session) write(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return wholefile.WriteDurable(filepath.Join(s.dir, name), text, 0o600)
}

// end removes the session's folder, once nothing of it is left to record.
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
		if err == nil && e.IsDir() && now().Sub(info.ModTime()) > forgotten {
			old = append(old, &session{dir: dir, now: now})
		}
	}
	return old
}
