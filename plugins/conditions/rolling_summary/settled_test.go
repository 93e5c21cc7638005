package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/testenv/llm"
	"github.com/memhost/memhost/sdk/sdktest"
)

// saveMemoryCall are the arguments of save_memory for a text of MEMORY.md.
func saveMemoryCall(text string) llm.Fault {
	return save(`{"history_entry":"Talked of Oslo.","memory_update":"` + strings.ReplaceAll(text, "\n", `\n`) + `"}`)
}

// TestWhatAPersonWroteHoldsAgainstMessagesThatWait: messages were recorded and wait for the model, which then writes
// the whole file as if the person had not changed it. What is said later counts again.
func TestWhatAPersonWroteHoldsAgainstMessagesThatWait(t *testing.T) {
	const before = "# Facts\n- Lives in Oslo.\n- Owns a cat.\n"
	write := func(text string) func(*bench) {
		return func(b *bench) {
			_, err := b.Mutate("write_memory", `{"content":"`+strings.ReplaceAll(text, "\n", `\n`)+`"}`)
			require.NoError(b.T, err)
		}
	}
	for name, c := range map[string]struct {
		settle      func(*bench)
		model, want string
	}{
		"a line is removed": {write("# Facts\n- Owns a cat.\n"), before + "- Plays chess.\n",
			"# Facts\n- Owns a cat.\n- Plays chess.\n"},
		"and comes in other words": {write("# Facts\n- Owns a cat.\n"), "# Facts\n- Owns a cat.\n- Home: Oslo, Norway\n- Plays chess.\n",
			"# Facts\n- Owns a cat.\n- Plays chess.\n"},
		"a line is corrected": {write("# Facts\n- Lives in Rome.\n- Owns a cat.\n"), before + "## Games\n- Plays chess.\n",
			"# Facts\n- Lives in Rome.\n- Owns a cat.\n## Games\n- Plays chess.\n"},
		"a line is added":       {write(before + "- Is a nurse.\n"), "# Facts\n- Lives in Oslo.\n", before + "- Is a nurse.\n"},
		"a new line's place":    {write(before + "- Is a nurse.\n"), "# Facts\n- Plays chess.\n", "# Facts\n- Plays chess.\n- Lives in Oslo.\n- Owns a cat.\n- Is a nurse.\n"},
		"all of it is replaced": {write("Nothing is to be kept.\n"), before, "Nothing is to be kept.\n"},
		"all of it is removed":  {write(""), before + "- Plays chess.\n", "- Plays chess.\n"},
		"without spaces":        {write("# Facts\n- Owns a cat.\n- 他喜欢猫。\n"), before, "# Facts\n- Owns a cat.\n- 他喜欢猫。\n"},
		"it is forgotten": {func(b *bench) {
			id := b.Find("s9", "?", abi.ContextBudget{}).Evidence[0].NativeID
			_, err := sdktest.Do(b.Host, abi.OpForget, scope, plugin.Forget,
				&abi.ForgetRequest{Scope: scope, NativeIDs: []string{id}, Reason: "asked"})
			require.NoError(b.T, err)
		}, before + "- Plays chess.\n", "- Plays chess.\n"},
		"twice": {func(b *bench) {
			write("# Facts\n- Owns a cat.\n")(b)
			write("# Facts\n")(b)
		}, before + "- Plays chess.\n", "# Facts\n- Plays chess.\n"},
		"and taken back": {func(b *bench) {
			write("# Facts\n- Owns a cat.\n")(b)
			write(before)(b)
		}, before + "- Commutes to Oslo.\n", before + "- Commutes to Oslo.\n"},
		"a try failed before": {func(b *bench) {
			b.Fail(llm.Fault{Mode: llm.NoTool})
			b.Wait()
			write("# Facts\n- Owns a cat.\n")(b)
			b.Fail(llm.Fault{Mode: llm.NoTool})
			b.Wait()
		}, before + "- Plays chess.\n", "# Facts\n- Owns a cat.\n- Plays chess.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, `"update_policy":"every_event"`)
			b.Record(b.Turn("s1", "I live in Oslo."))
			b.Fail(saveMemoryCall(before))
			require.Equal(t, abi.ReadinessReady, b.Wait().Status)
			b.Record(b.Turn("s1", "As I said, Oslo."))
			b.Record(b.Turn("s2", "Oslo is nice."))
			c.settle(b)
			b.Fail(saveMemoryCall(c.model))
			for range 4 {
				b.Later(1e12)
				b.Wait()
			}
			require.Equal(t, abi.ReadinessReady, b.Ready().Status)
			assert.Equal(t, c.want, b.memory())
			assert.Equal(t, 3, strings.Count(b.log(), "Talked of Oslo."), "the history tells of all")
			assert.NotContains(t, b.Keys(scope), settledKey, "nothing waits that is so old")

			b.Record(b.Turn("s1", "I live in Oslo again."))
			b.Fail(saveMemoryCall(before))
			b.Wait()
			assert.Equal(t, before, b.memory(), "what is said later counts")
		})
	}
}

// TestASessionIsDividedWhereAPersonWrote: of one session, the messages before a person wrote only add, those after it
// count as ever, in one piece of work.
func TestASessionIsDividedWhereAPersonWrote(t *testing.T) {
	b := newBench(t, "")
	b.Record(b.Turn("s1", "I live in Oslo."))
	b.Wait()
	require.Contains(t, b.memory(), "Oslo")
	b.Record(b.Turn("s1", "I live in Oslo, as I said."))
	_, err := b.Mutate("write_memory", `{"content":"- Lives in Rome.\n"}`)
	require.NoError(t, err)
	b.Record(b.Turn("s1", "I like oolong tea."))
	asked := b.Calls()
	require.NoError(t, b.Stub.Fail(llm.Fault{Mode: llm.Say, Times: 1,
		Content: `{"history_entry":"Oslo.","memory_update":"- Lives in Oslo.\n"}`}))
	b.Wait()
	assert.Equal(t, 2, b.Calls()-asked)
	assert.NotContains(t, b.Prompt(), "Oslo")
	assert.Contains(t, b.memory(), "Rome")
	assert.Contains(t, b.memory(), "oolong")
	assert.NotContains(t, b.memory(), "Oslo")
}
