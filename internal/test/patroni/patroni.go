//go:build linux

// Package patroni starts a highly available PostgreSQL for tests: three nodes under Patroni with etcd, on the loopback,
// as an ordinary user. install.sh puts Patroni and etcd into a folder.
package patroni

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Cluster is three nodes, of which one takes writes. The test ends it.
type Cluster struct {
	t     testing.TB
	home  string // what install.sh made
	dir   string
	bin   string // of PostgreSQL
	nodes []*Node
	etcd  []*Member

	mu   sync.Mutex
	logs []*os.File
}

// Node is one PostgreSQL and the Patroni that runs it.
type Node struct {
	c          *Cluster
	name       string
	port, rest int

	mu      sync.Mutex
	patroni *exec.Cmd
}

// nobody is the user of everything when the tests run as root.
const nobody = 65534

// Start makes a cluster of three nodes and waits until it has a leader and a synchronous standby. Home is the folder of
// install.sh.
func Start(t testing.TB, home string) *Cluster {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		t.Fatal("no PostgreSQL in /usr/lib/postgresql")
	}
	dir, err := os.MkdirTemp("", "ha")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t, home: home, dir: dir, bin: filepath.Dir(found[len(found)-1])}
	t.Cleanup(c.end)
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	c.startEtcd()
	for i := range 3 {
		n := &Node{c: c, name: fmt.Sprint("node", i), port: c.freePort(), rest: c.freePort()}
		c.nodes = append(c.nodes, n)
		n.configure()
		n.Start()
	}
	if !c.Whole() {
		t.Fatal("Patroni's cluster is not whole after 2 minutes")
	}
	return c
}

// tail is the end of a log file. Each line begins as `make cluster` lets it through.
func (c *Cluster) tail(name string) string {
	log, _ := os.ReadFile(filepath.Join(c.dir, name))
	return "  log: " + strings.ReplaceAll(string(log[max(0, len(log)-3000):]), "\n", "\n  log: ")
}

func (c *Cluster) freePort() int {
	c.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func (c *Cluster) command(log, name string, args ...string) *exec.Cmd {
	c.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=" + c.bin + ":/usr/bin:/bin", "HOME=" + c.dir,
		"PYTHONPATH=" + filepath.Join(c.home, "python"), "PYTHONDONTWRITEBYTECODE=1"}
	file, err := os.OpenFile(filepath.Join(c.dir, log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	c.logs = append(c.logs, file)
	c.mu.Unlock()
	cmd.Stdout, cmd.Stderr = file, file
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return cmd
}

// configuration of a node: %[1]s its name, %[2]d the port of PostgreSQL, %[3]d that of Patroni, %[4]s the folder, %[5]s
// the addresses of etcd, %[6]s the programs of PostgreSQL.
const configuration = `scope: memhost
name: %[1]s
restapi: {listen: 127.0.0.1:%[3]d, connect_address: 127.0.0.1:%[3]d}
etcd3: {hosts: "%[5]s"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 3
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql:
      use_pg_rewind: true
      use_slots: true
      parameters:
        max_connections: 200
        shared_buffers: 32MB
        wal_keep_size: 256MB
        wal_sender_timeout: 5s
        wal_receiver_timeout: 5s
        client_connection_check_interval: 2s
        tcp_keepalives_idle: 5
        tcp_keepalives_interval: 2
        tcp_keepalives_count: 3
  initdb: [{encoding: UTF8}, {locale: C}, data-checksums]
postgresql:
  listen: 127.0.0.1:%[2]d
  connect_address: 127.0.0.1:%[2]d
  data_dir: %[4]s/%[1]s
  bin_dir: %[6]s
  pgpass: %[4]s/%[1]s.pgpass
  authentication:
    superuser: {username: memhost, password: none}
    replication: {username: replicator, password: none}
    rewind: {username: memhost, password: none}
  parameters: {unix_socket_directories: %[4]s}
  pg_hba: ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
`

func (n *Node) configure() {
	var etcd []string
	for _, m := range n.c.etcd {
		etcd = append(etcd, m.client)
	}
	text := fmt.Sprintf(configuration, n.name, n.port, n.rest, n.c.dir, strings.Join(etcd, ","), n.c.bin)
	if err := os.WriteFile(n.file(".yml"), []byte(text), 0o644); err != nil {
		n.c.t.Fatal(err)
	}
}

func (n *Node) file(suffix string) string { return filepath.Join(n.c.dir, n.name+suffix) }

// Start starts the node's Patroni, which starts PostgreSQL.
func (n *Node) Start() {
	cmd := n.c.command(n.name+".log", "/usr/bin/python3", "-m", "patroni", n.file(".yml"))
	if err := cmd.Start(); err != nil {
		n.c.t.Errorf("patroni: %s", err)
		return
	}
	n.mu.Lock()
	n.patroni = cmd
	n.mu.Unlock()
}

// postmaster is the process of the node's PostgreSQL; 0 when there is none.
func (n *Node) postmaster() int {
	text, err := os.ReadFile(filepath.Join(n.c.dir, n.name, "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil || pid <= 1 {
		return 0
	}
	// Another process may have the number now.
	line, err := os.ReadFile(filepath.Join("/proc", first, "cmdline"))
	if err != nil || !strings.Contains(string(line), n.c.dir) {
		return 0
	}
	return pid
}

func children(pid int) []int {
	p := strconv.Itoa(pid)
	text, _ := os.ReadFile(filepath.Join("/proc", p, "task", p, "children"))
	var pids []int
	for _, word := range strings.Fields(string(text)) {
		if child, err := strconv.Atoi(word); err == nil && child > 1 {
			pids = append(pids, child)
		}
	}
	return pids
}

// signal sends a signal to Patroni, to PostgreSQL, and to the processes of its connections.
func (n *Node) signal(signal syscall.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	postmaster := n.postmaster()
	if n.patroni != nil {
		_ = n.patroni.Process.Signal(signal)
	}
	if postmaster == 0 {
		return
	}
	_ = syscall.Kill(postmaster, signal)
	for _, pid := range children(postmaster) {
		_ = syscall.Kill(pid, signal)
	}
}

// Pause stops all processes of the node until Continue.
func (n *Node) Pause() { n.signal(syscall.SIGSTOP) }

// Continue ends a Pause.
func (n *Node) Continue() { n.signal(syscall.SIGCONT) }

// Kill ends all processes of the node at once. Start starts it again.
func (n *Node) Kill() {
	n.signal(syscall.SIGKILL)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.patroni != nil {
		_ = n.patroni.Wait()
		n.patroni = nil
	}
}

// KillPostgres ends the node's PostgreSQL at once. Patroni starts it again, or lets another node lead.
func (n *Node) KillPostgres() {
	if pid := n.postmaster(); pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Addresses are where the nodes take connections.
func (c *Cluster) Addresses() []string {
	var list []string
	for _, n := range c.nodes {
		list = append(list, fmt.Sprintf("127.0.0.1:%d", n.port))
	}
	return list
}

// Leader is the node that takes writes; nil when there is none for a minute.
func (c *Cluster) Leader() *Node {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		for _, n := range c.nodes {
			if n.says("primary") {
				return n
			}
		}
	}
	return nil
}

// says asks the node's Patroni whether it is something: primary, replica, synchronous.
func (n *Node) says(what string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/%s", n.rest, what), nil)
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

// whole reports whether there are a leader, a synchronous standby and another one.
func (c *Cluster) whole() bool {
	leader, synchronous, replicas := 0, 0, 0
	for _, n := range c.nodes {
		switch {
		case n.says("primary"):
			leader++
		case n.says("synchronous"):
			synchronous++
		case n.says("replica"):
			replicas++
		}
	}
	return leader == 1 && synchronous == 1 && replicas == 1
}

// Whole waits until all nodes are running again. After two minutes it returns false, with each node's state and the end of
// its log in the test's log.
func (c *Cluster) Whole() bool {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if c.whole() {
			return true
		}
	}
	for _, n := range c.nodes {
		c.t.Logf("%s: primary %t, synchronous %t, replica %t; its log ends:\n%s", n.name, n.says("primary"),
			n.says("synchronous"), n.says("replica"), c.tail(n.name+".log"))
	}
	return false
}

func (c *Cluster) end() {
	for _, n := range c.nodes {
		n.Kill()
	}
	for _, m := range c.etcd {
		m.Kill()
	}
	for _, file := range c.logs {
		_ = file.Close()
	}
	_ = os.RemoveAll(c.dir)
}
