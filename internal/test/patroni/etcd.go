//go:build linux

package patroni

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Member is one of the three processes of etcd, which know who leads. Two of them are enough.
type Member struct {
	c       *Cluster
	name    string
	program string
	args    []string
	client  string // where it takes calls

	mu  sync.Mutex
	cmd *exec.Cmd
}

func (c *Cluster) startEtcd() {
	program := filepath.Join(c.home, "debian", "usr", "bin", "etcd")
	if _, err := os.Stat(program); err != nil {
		program = "etcd"
	}
	var peers []string
	ports := make([]int, 3)
	for i := range ports {
		ports[i] = c.freePort()
		peers = append(peers, fmt.Sprintf("etcd%d=http://127.0.0.1:%d", i, ports[i]))
	}
	for i, port := range ports {
		m := &Member{c: c, name: fmt.Sprint("etcd", i), program: program,
			client: fmt.Sprintf("127.0.0.1:%d", c.freePort())}
		peer := fmt.Sprintf("http://127.0.0.1:%d", port)
		m.args = []string{"--name", m.name, "--data-dir", filepath.Join(c.dir, m.name), "--listen-client-urls",
			"http://" + m.client, "--advertise-client-urls", "http://" + m.client, "--listen-peer-urls", peer,
			"--initial-advertise-peer-urls", peer, "--initial-cluster", strings.Join(peers, ","),
			"--heartbeat-interval", "100", "--election-timeout", "1000"}
		c.etcd = append(c.etcd, m)
		m.Start()
	}
}

// Members are the processes of etcd.
func (c *Cluster) Members() []*Member { return c.etcd }

// Start starts the member, with the data that it had.
func (m *Member) Start() {
	cmd := m.c.command(m.name+".log", m.program, m.args...)
	if err := cmd.Start(); err != nil {
		m.c.t.Errorf("etcd: %s", err)
		return
	}
	m.mu.Lock()
	m.cmd = cmd
	m.mu.Unlock()
}

// Kill ends the member at once. Start starts it again.
func (m *Member) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd != nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
		m.cmd = nil
	}
}

// Pause stops the member until Continue.
func (m *Member) Pause() { m.signal(syscall.SIGSTOP) }

// Continue ends a Pause.
func (m *Member) Continue() { m.signal(syscall.SIGCONT) }

func (m *Member) signal(signal syscall.Signal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd != nil {
		_ = m.cmd.Process.Signal(signal)
	}
}

// Healthy waits until the member is one of a cluster that has a leader. False when it is not for a minute; then the end
// of its log is in the test's.
func (m *Member) Healthy() bool {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if m.healthy() {
			return true
		}
	}
	m.c.t.Logf("the log of %s ends:\n%s", m.name, m.c.tail(m.name+".log"))
	return false
}

func (m *Member) healthy() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.client+"/health", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
