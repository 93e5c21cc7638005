package main

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

func TestSkillsAreDreamsWhereAllowed(t *testing.T) {
	const write = `{"path":"skills/coffee/SKILL.md","content":"# Coffee"}`
	for _, c := range []struct {
		config  string
		written string
	}{{`"dream":{"allow_skills":true}`, "# Coffee"}, {"", ""}} {
		b := newBench(t, c.config)
		require.NoError(t, b.Take(map[string]string{"skills/tea/SKILL.md": "# Tea"}))
		b.Record(b.Turn("s1", "I like oolong tea."))
		m := b.open()
		desk := m.desk(folder{{path: soulFile}})
		require.NoError(t, m.Err())
		if m.settings.dream.skills {
			desk = desk.withSkill(call("write_file", write))
		}
		says := desk.call(call("write_file", write))
		if c.written == "" {
			assert.Contains(t, says, "Error: ")
			continue
		}
		assert.Equal(t, c.written, desk.at("skills/coffee/SKILL.md").text)
		assert.Equal(t, "# Tea", desk.call(call("read_file", `{"path":"skills/tea/SKILL.md"}`)))
		assert.Equal(t, "Wrote skills/tea/SKILL.md", desk.call(call("write_file",
			`{"path":"skills/tea/SKILL.md","content":"new"}`)), "a skill is written anew")
		for _, path := range []string{"skills/x", "skills/../SOUL.md", "skills/.hidden/x", "skills/tea/SKILL.md/x",
			"skills//x", "skills/tea", `skills/a\\b/c`} {
			assert.Len(t, desk.withSkill(call("write_file", `{"path":"`+path+`","content":"evil"}`)), len(desk),
				"check B20: %s", path)
		}
	}
}

func TestASkillThatDreamWroteIsKept(t *testing.T) {
	b := newBench(t, `"dream":{"allow_skills":true}`)
	require.NoError(t, b.Take(map[string]string{"skills/tea/SKILL.md": "# Tea"}))
	b.Record(b.Turn("s1", "I like oolong tea."))
	manifest, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	prompt := ""
	b.HTTP = sdktest.Handler(t, manifest, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"role":"tool"`) && strings.Contains(string(body), "edit_file") {
			prompt = string(body)
			_, _ = io.WriteString(w,
				`{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"write_file","arguments":"{\"path\":\"skills/coffee/SKILL.md\",\"content\":\"# Coffee\"}"}}]}}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"- [durable] Likes oolong tea."}}]}`)
	}))
	require.Equal(t, abi.ReadinessReady, b.Wait().Status)
	assert.Contains(t, prompt, "### skills/tea/SKILL.md")
	files := b.Files()
	assert.Equal(t, "# Coffee", files["skills/coffee/SKILL.md"])
	assert.Equal(t, files, b.Again(files).Files())
	assert.NotContains(t, files, "versions/log.jsonl", "a skill is no tracked file")
}
