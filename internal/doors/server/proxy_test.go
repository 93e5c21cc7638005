//go:build unix

package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/doors/page"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// behind starts a proxy in front of a slot. begin makes the command of a proxy that listens at address, forwards to the
// slot, and keeps its files in dir.
func behind(t *testing.T, begin func(dir, address, slot string) *exec.Cmd, change ...func(*server.Options)) (address string) {
	t.Helper()
	s, _ := newServer(t, new(servertest.Slot), change...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address = free.Addr().String()
	require.NoError(t, free.Close())
	cmd := begin(t.TempDir(), address, l.Addr().String())
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		stop()
		<-ended
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	return address
}

// installed returns the path of a program. It skips the test if the program is not installed.
func installed(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("no %s (Debian has a package of that name): %s", program, err)
	}
	return path
}

// behindNginx is behind with nginx and the location of examples/operate/nginx.conf, or another one.
func behindNginx(t *testing.T, location string, change ...func(*server.Options)) (address string) {
	t.Helper()
	program := installed(t, "nginx")
	return behind(t, func(dir, address, slot string) *exec.Cmd {
		text := fmt.Sprintf("daemon off;\nmaster_process off;\npid %[1]s/pid;\nerror_log %[1]s/error.log;\nevents {}\n"+
			"http {\naccess_log off;\nclient_body_temp_path %[1]s/b;\nproxy_temp_path %[1]s/p;\n"+
			"fastcgi_temp_path %[1]s/f;\nuwsgi_temp_path %[1]s/u;\nscgi_temp_path %[1]s/s;\n"+
			"server {\nlisten %[2]s;\n%[3]s\n}\n}\n", dir, address, strings.ReplaceAll(location, "127.0.0.1:7077", slot))
		conf := filepath.Join(dir, "nginx.conf")
		require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
		return exec.Command(program, "-c", conf, "-p", dir, "-e", filepath.Join(dir, "error.log"))
	}, change...)
}

// behindCaddy is behind with Caddy and examples/operate/Caddyfile, without TLS.
func behindCaddy(t *testing.T, change ...func(*server.Options)) (address string) {
	t.Helper()
	program := installed(t, "caddy")
	example, err := os.ReadFile("../../../examples/operate/Caddyfile")
	require.NoError(t, err)
	return behind(t, func(dir, address, slot string) *exec.Cmd {
		text := strings.NewReplacer("\nmem.example.com {", "\nhttp://"+address+", http://mem.example.com:"+
			address[strings.LastIndex(address, ":")+1:]+" {", "127.0.0.1:7077", slot).Replace(string(example))
		require.NotContains(t, text, "\nmem.example.com", "no certificate is asked for")
		conf := filepath.Join(dir, "Caddyfile")
		require.NoError(t, os.WriteFile(conf, []byte("{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n}\n"+text), 0o600))
		cmd := exec.Command(program, "run", "--config", conf, "--adapter", "caddyfile")
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
		return cmd
	}, change...)
}

// reply is an answer without its body.
type reply struct {
	StatusCode int
	Header     http.Header
}

// through sends a request to a proxy and returns the answer with its body.
func through(t *testing.T, method, url, body string, headers ...string) (reply, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return reply{answer.StatusCode, answer.Header}, string(text)
}

// TestBehindNginxWithoutATokenNobodyIsServed, with nothing configured but proxy_pass.
func TestBehindNginxWithoutATokenNobodyIsServed(t *testing.T) {
	address := behindNginx(t, "location / { proxy_pass http://127.0.0.1:7077; }")
	for _, headers := range [][]string{nil, {"X-Forwarded-For", "203.0.113.9"}} {
		answer, text := through(t, "PUT", "http://"+address+wire.PathMode, `{"read_only": true}`,
			append(headers, "Content-Type", wire.MediaJSON)...)
		require.Equal(t, 403, answer.StatusCode, text)
		require.Contains(t, text, "MEMHOST_TOKEN")
	}
}

// TestBehindNginxWithTheExample: the file of examples/operate works below its path, for programs and for the page.
func TestBehindNginxWithTheExample(t *testing.T) {
	text, err := os.ReadFile("../../../examples/operate/nginx.conf")
	require.NoError(t, err)
	_, location, found := strings.Cut(string(text), "location ")
	require.True(t, found)
	location = "location " + strings.TrimSuffix(strings.TrimSpace(location), "}")
	const public = "https://mem.example.com/memory"
	p := page.New(page.On, true)
	address := behindNginx(t, location, withToken("secret"), func(o *server.Options) { o.PublicURL, o.Page = public, p })
	at := "http://" + address + "/memory"
	headers := []string{"Authorization", "Bearer secret", "Content-Type", wire.MediaJSON}
	for origin, status := range map[string]int{"": 200, "https://mem.example.com": 200, "https://evil.example.com": 403} {
		more := headers
		if origin != "" {
			more = append(headers[:4:4], "Origin", origin)
		}
		answer, text := through(t, "POST", at+wire.PathEvents, anEvent, more...)
		require.Equal(t, status, answer.StatusCode, text)
	}
	large := strings.Replace(anEvent, `"hi"`, `"`+strings.Repeat("x", 8<<20)+`"`, 1)
	answer, text2 := through(t, "POST", at+wire.PathEvents, large, headers...)
	require.Equal(t, 200, answer.StatusCode, text2)

	answer, _ = through(t, "GET", at+"/", "", "Authorization", "Bearer secret", "Accept", "text/html")
	require.Equal(t, "page/", answer.Header.Get("Location"), "relative: right below any path")
	answer, html := through(t, "GET", at+wire.PathPage, "")
	require.Equal(t, 200, answer.StatusCode)
	require.NotContains(t, html, `href="/`)
	require.NotContains(t, html, `src="/`)
	_, script := through(t, "GET", at+wire.PathPage+"page.js", "")
	require.Contains(t, script, `new URL("..", location.href)`)
	require.True(t, strings.HasPrefix(p.Link(public), public+wire.PathPage))
}

// TestBehindCaddyWithTheExample: the file of examples/operate works, and does not buffer live lines.
func TestBehindCaddyWithTheExample(t *testing.T) {
	const public = "https://mem.example.com"
	address := behindCaddy(t, withToken("secret"), func(o *server.Options) {
		o.PublicURL, o.Page, o.Operations = public, page.New(page.On, true), server.NewOperations()
	})
	at := "http://" + address
	headers := []string{"Authorization", "Bearer secret", "Content-Type", wire.MediaJSON}
	for origin, status := range map[string]int{public: 200, "https://evil.example.com": 403} {
		answer, text := through(t, "POST", at+wire.PathEvents, anEvent, append(headers[:4:4], "Origin", origin)...)
		require.Equal(t, status, answer.StatusCode, text)
	}
	large := strings.Replace(anEvent, `"hi"`, `"`+strings.Repeat("x", 8<<20)+`"`, 1)
	answer, text := through(t, "POST", at+wire.PathEvents, large, headers...)
	require.Equal(t, 200, answer.StatusCode, text)
	answer, _ = through(t, "GET", at+wire.PathPage, "")
	require.Equal(t, 200, answer.StatusCode)

	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second) // the next line would come after 15 s
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at+wire.PathOperations, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer secret")
	live, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = live.Body.Close() }()
	line, err := bufio.NewReader(live.Body).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, wire.LineAlive)
}

func TestBehindCaddyWithoutATokenNobodyIsServed(t *testing.T) {
	answer, text := through(t, "PUT", "http://"+behindCaddy(t)+wire.PathMode, `{"read_only": true}`, "Content-Type",
		wire.MediaJSON)
	require.Equal(t, 403, answer.StatusCode, text)
	require.Contains(t, text, "MEMHOST_TOKEN")
}

func TestAPublicURLThatCannotBe(t *testing.T) {
	for _, text := range []string{"mem.example.com", "ftp://mem.example.com", "https://", "https://u@h", "https://h?q"} {
		_, err := server.New(server.Options{Slot: new(servertest.Slot), PublicURL: text})
		require.ErrorContains(t, err, "server.public_url", text)
	}
}

// TestAPublicURLOpensNothingWithoutAToken: its origin counts only if requests from a proxy are served at all.
func TestAPublicURLOpensNothingWithoutAToken(t *testing.T) {
	s, _ := newServer(t, untouchable(t), func(o *server.Options) { o.PublicURL = "https://mem.example.com" })
	w := ask(s.Handler(), "GET", wire.PathMode, "", "Origin", "https://mem.example.com")
	require.Equal(t, 403, w.Code)
}
