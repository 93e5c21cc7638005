package agenthook_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/agenthook"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/outbox"
	"github.com/memhost/memhost/internal/text/conversations"
	"github.com/memhost/memhost/internal/text/convert"
)

// untouched sets the times of all session folders by the test's clock.
func (a *agent) untouched() {
	a.t.Helper()
	folders, err := os.ReadDir(filepath.Join(a.folder, "prompts"))
	require.NoError(a.t, err)
	for _, f := range folders {
		require.NoError(a.t, os.Chtimes(filepath.Join(a.folder, "prompts", f.Name()), a.now, a.now))
	}
}

// TestASessionThatOnlyReadsRecordsWhatWasSaidBefore: by a session that was killed, and by this one before it was
// resumed read-only.
func TestASessionThatOnlyReadsRecordsWhatWasSaidBefore(t *testing.T) {
	a := start(t)
	a.tell(prompt("s1", "I moved to Lyon."))
	a.untouched()
	a.now = a.now.Add(25 * time.Hour)
	a.tell(prompt("s2", "I like oolong."))
	a.change = func(o *agenthook.Options) { o.NoRecord = true }
	a.tell(`{"session_id":"s2","cwd":"/","hook_event_name":"SessionStart","source":"resume"}`)
	require.Equal(t, []string{"user: I moved to Lyon."}, a.words())
	a.tell(prompt("s2", "A secret."))
	a.tell(stop("s2", "About the secret."))
	require.Equal(t, []string{"user: I moved to Lyon.", "user: I like oolong."}, a.words())
}

func TestASessionThatIsResumedAfterDaysGoesOn(t *testing.T) {
	a := start(t)
	a.tell(prompt("s1", "Monday."))
	a.tell(stop("s1", "Noted."))
	a.untouched()
	a.now = a.now.Add(72 * time.Hour)
	a.tell(`{"session_id":"s1","cwd":"/","hook_event_name":"SessionStart","source":"resume"}`)
	require.Equal(t, "Monday.", a.slot.asked[len(a.slot.asked)-1].Query)
	a.tell(prompt("s1", "Thursday."))
	a.tell(stop("s1", "Noted."))
	require.Equal(t, []string{"user: Monday.\nassistant: Noted.", "user: Thursday.\nassistant: Noted."}, a.words())
	require.NotContains(t, a.log.String(), "could not be written")
}

func TestASessionThatBeginsLeavesOthersAlone(t *testing.T) {
	a := start(t)
	a.tell(prompt("s1", "Plan a trip."))
	a.untouched()
	a.now = a.now.Add(23 * time.Hour)
	a.tell(`{"session_id":"s2","cwd":"/","hook_event_name":"SessionStart","source":"startup"}`)
	require.Empty(t, a.words(), "its agent may still be at work")
	a.tell(stop("s1", "To Kyoto."))
	require.Equal(t, []string{"user: Plan a trip.\nassistant: To Kyoto."}, a.words())
}

func TestAPromptWaitsForItsContextNoLongerThanItMay(t *testing.T) {
	a := start(t)
	a.slot.hangs = true
	a.change = func(o *agenthook.Options) { o.Timeout = 50 * time.Millisecond }
	began := time.Now()
	require.Contains(t, a.tell(prompt("s1", "I like oolong.")).Message, "no memory for now")
	require.Less(t, time.Since(began), 25*time.Second)
	a.tell(stop("s1", "Noted."))
	require.Equal(t, []string{"user: I like oolong.\nassistant: Noted."}, a.words())
}

// TestAFullOutboxIsSaidWithWhatToDo: the oldest turn stays, and the next one waits as prompts until there is room.
func TestAFullOutboxIsSaidWithWhatToDo(t *testing.T) {
	a := start(t)
	a.slot.fail = abi.NewError(abi.CodeUnavailable, "no slot answers").WithReason(client.ReasonNoSlot).
		WithHint("start one")
	a.change = func(o *agenthook.Options) {
		var err error
		o.Box, err = outbox.Open(filepath.Join(a.folder, "small"), outbox.Options{Max: 1})
		require.NoError(t, err)
		o.Deliver = func() { o.Box.Deliver(t.Context(), a.slot) }
	}
	require.Regexp(t, `: no slot answers; start one$`, a.tell(prompt("s1", "One.")).Message)
	a.tell(stop("s1", "1"))
	a.tell(prompt("s1", "Two."))
	require.Regexp(t, `^memhost: the turn is not recorded yet: .*full, 1 events wait .*; `+
		`start the slot that they wait for`, a.tell(stop("s1", "2")).Message)
	a.slot.fail = nil
	a.tell(prompt("s1", "Three."))
	a.tell(stop("s1", "3"))
	require.Equal(t, []string{"user: One.\nassistant: 1", "user: Two.\nuser: Three.\nassistant: 3"}, a.words())
}

// TestTwoMemoriesOfOneSessionAreNotMixed: the user's settings and the project's may each have a hook, and flags change.
func TestTwoMemoriesOfOneSessionAreNotMixed(t *testing.T) {
	a, run := start(t), "home"
	a.change = func(o *agenthook.Options) { o.Scope.RunID = run }
	for _, run = range []string{"home", "tea"} {
		a.tell(prompt("s1", "Both."))
		a.now = a.now.Add(time.Second - time.Minute) // the two hooks of a prompt run at the same time
	}
	a.tell(stop("s1", "Yes."))
	require.Equal(t, []string{"user: Both.\nassistant: Yes.", "user: Both.\nassistant: Yes."}, a.words())
	run = "home"
	a.tell(prompt("s1", "My PIN is 1234."))
	run = "work"
	a.tell(prompt("s1", "Hello."))
	a.tell(stop("s1", "Hello from work."))
	require.Equal(t, []string{"user: My PIN is 1234.", "user: Hello.\nassistant: Hello from work."}, a.words()[2:])
	runs := make([]string, 0, 4)
	for _, e := range a.slot.told {
		runs = append(runs, e.RunID)
	}
	require.Equal(t, []string{"home", "tea", "home", "work"}, runs)
}

func TestASessionStaysWithTheProjectThatItBeganIn(t *testing.T) {
	a := start(t)
	tea, coffee := filepath.Join(a.folder, "tea"), filepath.Join(a.folder, "coffee")
	in := ""
	a.change = func(o *agenthook.Options) { o.Scope.RunID, o.Dir = agenthook.PlaceProject, in }
	for _, in = range []string{tea, coffee} {
		a.tell(prompt("s1", "Which one?"))
	}
	in = coffee
	a.tell(stop("s1", "This one."))
	a.tell(prompt("s2", "Which one?"))
	projects := make([]string, 0, 3)
	for _, q := range a.slot.asked {
		projects = append(projects, q.Scope.RunID)
	}
	of := agenthook.Project(tea)
	require.Equal(t, []string{of, of, agenthook.Project(coffee)}, projects)
	require.Equal(t, of, a.slot.told[0].RunID)
}

func TestTurnsOfTheSameWordsAreSeveral(t *testing.T) {
	a := start(t)
	for range 3 {
		a.tell(prompt("s1", "go on"))
		a.tell(stop("s1", "ok"))
	}
	a.tell(prompt("s1", "go on"))
	a.tell(stop("s1", ""))
	turn := "user: go on\nassistant: ok"
	require.Equal(t, []string{turn, turn, turn, "user: go on"}, a.words())
}

func TestWordsAroundAnEnvelopeAreAPersons(t *testing.T) {
	a := start(t)
	a.tell(prompt("s1", "Why did I get <task-notification>done</task-notification>"))
	a.tell(stop("s1", "A task ended."))
	require.Len(t, a.words(), 1)
}

// TestAWorkTreeWithARelativePathIsOfItsRepository: git writes such paths with worktree.useRelativePaths.
func TestAWorkTreeWithARelativePathIsOfItsRepository(t *testing.T) {
	dir := t.TempDir()
	main, tree := filepath.Join(dir, "tea"), filepath.Join(dir, "trees", "fix")
	require.NoError(t, os.MkdirAll(filepath.Join(main, ".git", "worktrees", "fix"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(tree, "docs"), 0o755))
	relative := []byte("gitdir: ../../tea/.git/worktrees/fix\n")
	require.NoError(t, os.WriteFile(filepath.Join(tree, ".git"), relative, 0o600))
	require.Equal(t, agenthook.Project(main), agenthook.Project(filepath.Join(tree, "docs")))
}

func TestUndoLeavesEmptyListsOfTheUsers(t *testing.T) {
	before := []byte(`{
  "hooks": {
    "Notification": [],
    "Stop": [
      {
        "matcher": "*",
        "hooks": []
      }
    ]
  }
}
`)
	installed, err := agenthook.Install(before, "claude-code", "/usr/bin/memhost hook claude-code")
	require.NoError(t, err)
	require.NotEqual(t, string(before), string(installed))
	after, err := agenthook.Uninstall(installed, "/usr/bin/memhost hook claude-code")
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	require.Empty(t, agenthook.Diff(before, after))
}

// TestStopHooksAtOnceRecordATurnOnce: the agent's settings may contain memhost several times, and the agent runs its
// hooks in parallel.
func TestStopHooksAtOnceRecordATurnOnce(t *testing.T) {
	a := start(t)
	const sessions, hooks = 100, 4
	for n := range sessions {
		session := fmt.Sprintf("s%d", n)
		for _, text := range []string{"a", "b", "c", "d"} {
			a.tell(prompt(session, text+" of "+session))
		}
		var all sync.WaitGroup
		for i := range hooks {
			payload := stop(session, "ok")
			if i == hooks-1 {
				payload = fmt.Sprintf(`{"session_id":%q,"hook_event_name":"SessionEnd","reason":"other"}`, session)
			}
			all.Go(func() { a.raw(payload) })
		}
		all.Wait()
	}
	require.Equal(t, sessions, len(a.slot.told))
	for n, words := range a.words() {
		s := fmt.Sprintf(" of s%d", n)
		require.Contains(t, words, "user: a"+s+"\nuser: b"+s+"\nuser: c"+s+"\nuser: d"+s)
	}
}

// TestAHookAndAnImportNameATurnAlike: by the agent's own ids, or by the entry of its log.
func TestAHookAndAnImportNameATurnAlike(t *testing.T) {
	log := `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","timestamp":"2026-03-02T09:00:00Z","message":{"content":"I like oolong."}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s1","timestamp":"2026-03-02T09:00:05Z","message":{"content":[{"type":"text","text":"Noted."}]}}
`
	path := filepath.Join(t.TempDir(), "s1.jsonl")
	for name, c := range map[string]struct{ log, with string }{"by its log": {log, `"transcript_path":` + strconv.Quote(path)},
		"by the prompt's id": {strings.Replace(log, `"uuid":"u1"`, `"uuid":"u1","promptId":"p1"`, 1), `"prompt_id":"p1"`}} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(c.log), 0o600))
			r, err := conversations.Open(conversations.ClaudeCode, []string{path}, conversations.Options{Options: convert.Options{RunID: "r", UserID: "u"}})
			require.NoError(t, err)
			item, err := r.Next()
			require.NoError(t, err)
			a := start(t)
			a.tell(`{"session_id":"s1","hook_event_name":"UserPromptSubmit",` + c.with + `,"prompt":"<ide_selection>x</ide_selection>I like oolong."}`)
			a.tell(`{"session_id":"s1","hook_event_name":"Stop",` + c.with + `,"last_assistant_message":"<think>Tea.</think>Noted."}`)
			require.Equal(t, []string{"user: I like oolong.\nassistant: Noted."}, a.words())
			require.Equal(t, item.Event.EventID, a.slot.told[0].EventID)
			a.tell(`{"session_id":"s1","hook_event_name":"UserPromptSubmit",` + c.with + `,"prompt":"I like oolong."}`)
			a.tell(`{"session_id":"s1","hook_event_name":"Stop",` + c.with + `,"last_assistant_message":"Yes."}`)
			require.Len(t, a.words(), 2, "said again in the same turn, which is recorded already")
		})
	}
}

// TestInputsOfWindows: with a byte order mark and CR LF.
func TestInputsOfWindows(t *testing.T) {
	a := start(t)
	mark := "\ufeff"
	a.tell(mark + strings.ReplaceAll(prompt("s1", "I like oolong."), `,"`, ",\r\n\"") + "\r\n")
	a.tell(mark + stop("s1", "Noted.") + "\r\n")
	require.Equal(t, []string{"user: I like oolong.\nassistant: Noted."}, a.words())
	require.True(t, strings.HasSuffix(a.slot.told[0].Timestamp, "Z"))
}
