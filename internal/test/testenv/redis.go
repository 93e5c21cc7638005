package testenv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// startRedis starts a Redis and returns its port. It keeps its data on disk if the run's folder stays. The program is
// the system's, or Debian's package unpacked into the cache.
func (e *Env) startRedis(ctx context.Context) (int, error) {
	var env []string
	program, err := exec.LookPath("redis-server")
	if err != nil {
		root, err := e.debian(ctx, "redis", "redis-server")
		if err != nil {
			return 0, fmt.Errorf("redis-server is missing: %w", err)
		}
		program = filepath.Join(root, "usr", "bin", "redis-server")
		libraries, err := filepath.Glob(filepath.Join(root, "usr", "lib", "*-linux-gnu"))
		if err != nil {
			return 0, err
		}
		env = append(env, "LD_LIBRARY_PATH="+strings.Join(libraries, ":"))
	}
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	home := filepath.Join(e.Dir, "redis")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return 0, err
	}
	e.say("start Redis")
	p, err := e.start(command{name: "redis", dir: home, env: env, args: []string{program, "--port", strconv.Itoa(port),
		"--bind", "127.0.0.1", "--save", "",
		"--appendonly", map[bool]string{false: "no", true: "yes"}[e.lasting]}})
	if err != nil {
		return 0, err
	}
	return port, e.ready(ctx, p, 30*time.Second, func(ctx context.Context) error { return pingRedis(ctx, port) })
}

func pingRedis(ctx context.Context, port int) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && line != "+PONG\r\n" {
		err = errors.New("redis says " + strings.TrimSpace(line))
	}
	return err
}
