package seat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/subject"
)

// process is a program that serves one conversation.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *io.PipeReader // must be read to its end, or the exit of the program is never noticed
	log     *tail
	timeout time.Duration
	exited  chan struct{} // closed once status is known
	status  error
}

// startProcess starts a program in the conversation's workspace. Its environment has the address of the slot and the
// conversation's token, and no other token.
//
// Errors: a failure of the subject, if the program cannot be started.
func startProcess(command []string, start *subject.Start, timeout time.Duration) (*process, error) {
	p := &process{log: &tail{}, timeout: timeout, exited: make(chan struct{})}
	p.cmd = exec.Command(command[0], command[1:]...) //nolint:gosec // the operator's own lab file names it
	out, written := io.Pipe()
	p.out = out
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = start.Workspace, environment(start), written, p.log
	p.cmd.WaitDelay = lingering
	ownGroup(p.cmd)
	var err error
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, subject.Failed(abi.CodeBackend, fmt.Sprintf("the subject cannot be started: %v", err))
	}
	go func() {
		p.status = p.cmd.Wait()
		_ = written.Close()
		close(p.exited)
	}()
	return p, nil
}

// lingering is how long a descendant may keep the output of a program that has exited open.
const lingering = time.Second

// environment is this process's environment, with this conversation's slot instead of any other.
func environment(start *subject.Start) []string {
	ours := map[string]string{"MEMHOST_SERVER": start.Door.HTTP, "MEMHOST_TOKEN": start.Door.Token,
		"MEMHOST_RUN_ID": start.Scope.RunID, "MEMHOST_PERSONA_ID": start.Scope.PersonaID,
		"MEMHOST_SESSION_ID": start.Session, "MEMHOST_WORKSPACE": start.Workspace,
		"MEMHOST_USER_NAME": start.User.Name, "MEMHOST_USER_PROFILE": start.User.Profile}
	list := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, replaced := ours[name]
		return replaced
	})
	for name, value := range ours {
		list = append(list, name+"="+value)
	}
	return list
}

// end closes the program's input and waits until it has exited. If it does not exit, it is killed with its process
// group.
func (p *process) end(ctx context.Context) []journal.Breach {
	_ = p.in.Close()
	timer := time.NewTimer(p.timeout)
	defer timer.Stop()
	var breaches []journal.Breach
	select {
	case <-p.exited:
		switch {
		case errors.Is(p.status, exec.ErrWaitDelay):
			breaches = append(breaches, journal.Breach{Kind: "left_running",
				Detail: "the subject exited, and a program that it started did not"})
		case p.status != nil:
			breaches = append(breaches, journal.Breach{Kind: "exit_status", Detail: p.ended()})
		}
	case <-timer.C:
		breaches = append(breaches, journal.Breach{Kind: "not_exited",
			Detail: fmt.Sprintf("the subject had not exited %s after the end, and was killed", p.timeout)})
	case <-ctx.Done():
	}
	p.kill()
	return breaches
}

// kill kills the program and its process group, and waits for it.
func (p *process) kill() {
	_ = p.in.Close()
	killGroup(p.cmd) // including descendants of a program that has exited
	<-p.exited
}

// ended describes how the program ended, with the end of its standard error.
func (p *process) ended() string {
	status := "exited with status 0"
	if p.status != nil {
		status = p.status.Error()
	}
	if text := p.log.String(); text != "" {
		status += "; it wrote: " + text
	}
	return status
}

// tail keeps the last bytes of a text. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// maxTail is how much of a subject's standard error an error shows, in bytes.
const maxTail = 2000

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if extra := len(t.text) - maxTail; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.text), ""))
}

// labPlace is replaced in a command by the lab file's folder, because a subject runs in its own workspace.
const labPlace = "{lab}"

// lookup finds a lab file's program: a path, or a name in PATH.
func lookup(command []string, folder string) ([]string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, abi.WrapError(abi.CodeUnavailable, err.Error(), err)
	}
	var argv []string
	for _, word := range command {
		argv = append(argv, strings.ReplaceAll(word, labPlace, folder))
	}
	path, err := exec.LookPath(argv[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, fmt.Sprintf("subject.command: %v", err), err).
			WithHint("a path in the lab file's folder begins with " + labPlace + "/")
	}
	argv[0] = path
	return argv, nil
}
