package agenthook_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/doors/agenthook"
)

const others = `{
  "zeta": 1,
  "model": "opus",
  "hooks": {
    "Stop": [
      {
        "matcher": "",
        "hooks": [
          {
            "type": "command",
            "command": "cd x && say <done>"
          }
        ]
      }
    ]
  },
  "alpha": [
    1.50
  ]
}
`

func TestInstallKeepsTheRestAndUninstallGivesItBack(t *testing.T) {
	for _, before := range []string{others, "{}\n", "", `{"hooks":{}}`} {
		for _, agent := range []string{"claude-code", "codex"} {
			installed, err := agenthook.Install([]byte(before), agent, "/bin/memhost hook "+agent+" --run 'a b'")
			require.NoError(t, err)
			again, err := agenthook.Install(installed, agent, "/bin/memhost hook "+agent+" --run 'a b'")
			require.NoError(t, err)
			require.Equal(t, string(installed), string(again), "a second time changes nothing")
			moved, err := agenthook.Install(installed, agent, "'/my opt/memhost' hook "+agent)
			require.NoError(t, err)
			var settings struct {
				Hooks map[string][]struct {
					Hooks []struct {
						Type, Command string
						Timeout       int
					}
				}
			}
			require.NoError(t, json.Unmarshal(moved, &settings))
			for _, event := range agenthook.Events(agent) {
				groups := settings.Hooks[event]
				last := groups[len(groups)-1].Hooks
				require.Len(t, last, 1)
				require.Equal(t, "'/my opt/memhost' hook "+agent, last[0].Command)
				require.Equal(t, "command", last[0].Type)
				require.Positive(t, last[0].Timeout)
			}
			after, err := agenthook.Uninstall(moved, "/anywhere/memhost hook "+agent)
			require.NoError(t, err)
			if before == others {
				require.Equal(t, before, string(after))
				require.Empty(t, agenthook.Diff([]byte(before), after))
			} else {
				require.JSONEq(t, "{}", string(after))
			}
		}
	}
}

func TestSettingsThatAreNotUnderstoodAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"hooks": {"Stop": {}}}`:                 "hooks.Stop is not an array",
		`{"hooks": []}`:                           "hooks is not an object",
		`{"hooks": {"Stop": [1]}}`:                "hooks.Stop[0] is not an object",
		`{"hooks": {"Stop": [{"hooks": "x"}]}}`:   "hooks.Stop[0].hooks is not an array",
		"{ // my settings\n}":                     "the file is not an object",
		`{} {}`:                                   "the file is not one object",
		`{"a": 1`:                                 "the file is not an object",
		`{"hooks": {"UserPromptSubmit": "none"}}`: "hooks.UserPromptSubmit is not an array",
	} {
		_, err := agenthook.Install([]byte(text), "codex", "memhost hook codex")
		require.ErrorContains(t, err, want, text)
	}
}

func TestTheDiffShowsWhatChangesWithTwoLinesAround(t *testing.T) {
	require.Equal(t, "  ...\n  c\n  d\n- e\n+ E\n  f\n  g\n",
		agenthook.Diff([]byte("a\nb\nc\nd\ne\nf\ng\nh\n"), []byte("a\nb\nc\nd\nE\nf\ng\nh\n")))
	require.Equal(t, "+ {\n+ }\n", agenthook.Diff(nil, []byte("{\n}\n")))
}

// TestThePluginFolderHasTheHooksThatInstallWrites holds integrations/claude-code to the program.
func TestThePluginFolderHasTheHooksThatInstallWrites(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "integrations", "claude-code")
	text, err := os.ReadFile(filepath.Join(folder, "hooks", "hooks.json"))
	require.NoError(t, err)
	installed, err := agenthook.Install(nil, "claude-code", "memhost hook claude-code")
	require.NoError(t, err)
	require.JSONEq(t, string(installed), string(text))
	text, err = os.ReadFile(filepath.Join(folder, ".mcp.json"))
	require.NoError(t, err)
	var mcp struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	require.NoError(t, json.Unmarshal(text, &mcp))
	args := mcp.Servers["memory"].Args
	require.True(t, slices.Contains(args, agenthook.PlaceProject) && slices.Contains(args, agenthook.PlacePerson),
		"the tools' scope is the hooks'")
	for _, name := range []string{"plugin.json", "marketplace.json"} {
		text, err := os.ReadFile(filepath.Join(folder, ".claude-plugin", name))
		require.NoError(t, err)
		require.True(t, json.Valid(text))
	}
}

func TestAProgramOfAnotherNameKnowsItsOwnHooks(t *testing.T) {
	const command = "'/my opt/mh' hook claude-code"
	installed, err := agenthook.Install([]byte(others), "claude-code", command+" --user ann")
	require.NoError(t, err)
	again, err := agenthook.Install(installed, "claude-code", command)
	require.NoError(t, err)
	once, err := agenthook.Install([]byte(others), "claude-code", command)
	require.NoError(t, err)
	require.Equal(t, string(once), string(again))
	after, err := agenthook.Uninstall(again, command)
	require.NoError(t, err)
	require.Equal(t, others, string(after))
}
