package picoclaw_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/recorded"
)

// frame is a line of testdata/picoclaw.jsonl: what was recorded between a running PicoClaw (commit cf67dd38) and a
// probe in place of the hook. Prompt texts, tool descriptions and paths are placeholders.
type frame struct {
	Name, Note, Direction string
	Payload               json.RawMessage
}

// dialogue is the part of a frame's name that identifies its run: "tool_turn" of "tool_turn.3.hook.before_llm".
func (f *frame) dialogue() string {
	name, _, _ := strings.Cut(f.Name, ".")
	return name
}

func recording(t testing.TB) []frame { return recorded.Read[frame](t, "testdata/picoclaw.jsonl") }

var (
	memoryText = regexp.MustCompile(`(?s)<memory-context [^>]*>.*?</memory-context>`)
	hookName   = "name of the hook"
)

// masked returns a JSON value with memory texts and names masked.
func masked(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal(text, &v))
	return mask(v)
}

func mask(v any) any {
	switch v := v.(type) {
	case string:
		return memoryText.ReplaceAllString(v, "(memory)")
	case []any:
		for i := range v {
			v[i] = mask(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = mask(v[key])
		}
		if _, hello := v["ok"]; hello && v["name"] != nil {
			v["name"] = hookName
		}
	}
	return v
}

// What PicoClaw sent is sent again; the hook must answer like the probe, except in the runs in which the probe was
// wrong on purpose.
func TestTheRecordedExchanges(t *testing.T) {
	onPurpose := map[string]string{"rpc_error": "the probe refused every before_llm",
		"after_llm_echo": "the probe echoed responses"}
	byDialogue := map[string][]frame{}
	var order []string
	for _, f := range recording(t) {
		if f.Direction == "host->llm" {
			continue
		}
		if byDialogue[f.dialogue()] == nil {
			order = append(order, f.dialogue())
		}
		byDialogue[f.dialogue()] = append(byDialogue[f.dialogue()], f)
	}
	compared := 0
	for _, name := range order {
		t.Run(name, func(t *testing.T) {
			a := start(t, new(slot))
			answers := map[uint64]any{}
			for _, f := range byDialogue[name] {
				var head struct {
					ID     uint64
					Method string
				}
				if string(f.Payload) != "null" {
					require.NoError(t, json.Unmarshal(f.Payload, &head))
				}
				switch {
				case f.Direction == "hook->host" && onPurpose[name] == "":
					require.Equal(t, masked(t, f.Payload), answers[head.ID], f.Name)
					compared++
				case f.Direction == "host->hook" && string(f.Payload) == "null":
					a.end()
				case f.Direction == "host->hook" && head.ID != 0:
					got := a.call(string(f.Payload))
					answers[head.ID] = masked(t, got.Text)
					require.Equal(t, head.Method == "hook.after_llm", strings.Contains(f.Name, "after_llm"))
					if head.Method == "hook.after_llm" {
						require.Nil(t, got.modified(t), "the tool names of an echoed response are lost")
					}
				case f.Direction == "host->hook":
					a.send(string(f.Payload))
				}
			}
			if name == "llm_error" {
				require.Zero(t, mustWait(t, a))
			}
		})
	}
	require.Equal(t, 10, compared, "answers in the recording")
}

func mustWait(t *testing.T, a *agent) int {
	t.Helper()
	n, err := a.box.Waiting()
	require.NoError(t, err)
	return n
}

// The model gets the same request as in the recording: in every iteration of a turn the block is at the end of the
// user's message.
func TestTheModelSeesWhatItSawThen(t *testing.T) {
	frames := recording(t)
	for _, name := range []string{"plain_turn", "tool_turn"} {
		t.Run(name, func(t *testing.T) {
			a := start(t, new(slot))
			var seen, want []map[string]any
			for _, f := range frames {
				switch {
				case f.dialogue() != name:
				case strings.HasSuffix(f.Name, ".hook.before_llm"):
					seen = append(seen, a.call(string(f.Payload)).modified(t))
				case f.Direction == "host->llm":
					var request map[string]any
					require.NoError(t, json.Unmarshal(f.Payload, &request))
					want = append(want, request)
				}
			}
			require.NotEmpty(t, want)
			require.Len(t, seen, len(want))
			for i := range want {
				require.Equal(t, spoken(want[i]), spoken(seen[i]), "iteration %d", i+1)
				require.Equal(t, want[i]["model"], seen[i]["model"])
				require.Contains(t, lastContent(t, seen[i]), "\n\n<memory-context ")
			}
		})
	}
}

// spoken lists role and text of the messages. What the model's wire form leaves out is not compared.
func spoken(request map[string]any) (list [][2]string) {
	messages, _ := request["messages"].([]any)
	for _, v := range messages {
		m, _ := v.(map[string]any)
		role, _ := m["role"].(string)
		content, _ := m["content"].(string)
		list = append(list, [2]string{role, memoryText.ReplaceAllString(content, "(memory)")})
	}
	return list
}

// Of all turns in the recording, those in which a person got an answer are recorded.
func TestWhichRecordedTurnsAreRemembered(t *testing.T) {
	s := new(slot)
	a := start(t, s)
	for _, f := range recording(t) {
		if strings.HasSuffix(f.Name, ".hook.runtime_event") {
			a.send(string(f.Payload))
		}
	}
	a.end()
	var said []string
	for _, e := range s.told {
		require.NoError(t, e.Validate())
		require.Equal(t, [2]string{"run1", "user_a"}, [2]string{e.RunID, e.UserID})
		said = append(said, *e.Messages[0].Content)
		require.Len(t, e.Messages, 2)
	}
	require.Equal(t, []string{"I like oolong tea", `CALL:list_dir {"path":"."} CALL:read_file {"path":"nope.txt"}`,
		`CALL:subagent {"task":"count to three","label":"c"}`, "observe all"}, said,
		"not the failed turn, and not the sub-agent's")
}
