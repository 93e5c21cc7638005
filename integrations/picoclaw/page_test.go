//go:build unix

package picoclaw_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var goBlock = regexp.MustCompile("(?s)# PicoClaw with the memory in its own program\n.*?```go\n(.*?)```")

// TestThePage compiles the block of README.md with stand-ins for PicoClaw's packages, and runs two turns with it
// and the real memhost.
func TestThePage(t *testing.T) {
	s := &servedSlot{t: t, program: filepath.Join(t.TempDir(), "memhost"), dir: t.TempDir(), address: "127.0.0.1:0"}
	out, err := exec.Command("go", "build", "-C", "../..", "-o", s.program, "./cmd/memhost").CombinedOutput()
	require.NoError(t, err, string(out))
	s.Start()
	defer s.Stop()

	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	block := goBlock.FindStringSubmatch(string(text))
	require.NotNil(t, block)
	const here = "github.com/memhost/memhost/integrations/picoclaw"
	imports := fmt.Sprintf("import (\n\"context\"\n\"github.com/memhost/memhost/abi\"\n%q\n%q\n%q\n%q\n)\n", here, here+"/page/agent",
		here+"/page/config", here+"/page/events")
	replace := strings.NewReplacer("127.0.0.1:7077", s.address, "/home/ann/.picoclaw/memhost", filepath.Join(s.dir, "waiting"))
	hook := filepath.Join(t.TempDir(), "hook.go")
	require.NoError(t, os.WriteFile(hook, []byte("package main\n\n"+imports+replace.Replace(block[1])), 0o600))

	// For the compiler, testdata/page and the block are the folder page of this module.
	module, err := filepath.Abs(".")
	require.NoError(t, err)
	overlay := map[string]string{filepath.Join(module, "page", "hook.go"): hook}
	for _, name := range []string{"turns.go", "agent/agent.go", "config/config.go", "events/events.go"} {
		overlay[filepath.Join(module, "page", name)] = filepath.Join(module, "testdata", "page", name)
	}
	listed, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	list := filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(list, listed, 0o600))
	shown, err := exec.Command("go", "run", "-overlay", list, "./page").CombinedOutput()
	require.NoError(t, err, string(shown))
	require.Regexp(t, `(?s)^I like oolong tea\.\nWhich tea do I like\?\n\n<memory-context .*I like oolong tea\..*</memory-context>\n$`,
		string(shown))
	require.Equal(t, 2, strings.Count(s.command("archive", "export"), `"user_id":"telegram-101"`))
}
