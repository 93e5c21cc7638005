package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// undoneList is the list of dream_restore: ids, newest first, and which of them were undone.
func (b *bench) undoneList() (ids []string, undone []bool) {
	b.T.Helper()
	var list []struct {
		SHA    string
		Undone bool
	}
	require.NoError(b.T, json.Unmarshal(b.Query("dream_restore", `{}`), &list))
	for _, v := range list {
		ids, undone = append(ids, v.SHA), append(undone, v.Undone)
	}
	return ids, undone
}

func (b *bench) restore(sha string) string {
	b.T.Helper()
	r, err := b.Mutate("dream_restore", `{"sha":"`+sha+`"}`)
	require.NoError(b.T, err)
	return r.NativeIDs[0]
}

// TestARestoreIsFinal: Dream does not repeat what a person has undone, whether its run finished or not, and the entries
// are not shown as recent either. It still reads new entries.
func TestARestoreIsFinal(t *testing.T) {
	for _, config := range []string{``, `"dream":{"after_session":true}`, `"dream":{"max_iterations":1}`} {
		b := newBench(t, config)
		b.entries("- [durable] I like oolong tea.")
		made := b.dream()
		require.NotEmpty(t, made.NativeIDs, config)
		b.restore(made.NativeIDs[0])
		for range 3 {
			b.Later(3 * time.Hour)
			b.Idle()
			b.Wait()
		}
		assert.Equal(t, "1", b.dreamt(), config)
		assert.NotContains(t, b.Files()["USER.md"], "oolong", config)
		assert.NotContains(t, b.Find("s9", "tea?", abi.ContextBudget{}).FormattedContext, "oolong", config)
		b.version("I live in Oslo.")
		assert.Contains(t, b.Files()["USER.md"], "Oslo", config)
		assert.NotContains(t, b.Files()["USER.md"], "oolong", config)
	}
}

// TestARestoreIsAVersion: it is listed, marks what it undid, and can be undone itself.
func TestARestoreIsAVersion(t *testing.T) {
	b := newBench(t, "")
	first, second := b.version("I like oolong tea."), b.version("I live in Oslo.")
	back := b.restore(second)
	ids, undone := b.undoneList()
	assert.Equal(t, []string{back, second, first}, ids)
	assert.Equal(t, []bool{false, true, false}, undone)
	var newest versionLine
	require.NoError(t, json.Unmarshal(b.Query("dream_log", `{}`), &newest))
	assert.Equal(t, back, newest.SHA)

	again := b.restore(back)
	assert.Contains(t, b.Files()["USER.md"], "Oslo")
	ids, undone = b.undoneList()
	assert.Equal(t, []string{again, back, second, first}, ids)
	assert.Equal(t, []bool{false, true, false, false}, undone)
}

// TestReplaysOnDifferentDaysGiveTheSameBytes: all files depend on the timeline only, except for the field wall_clock of
// Dream's runs.
func TestReplaysOnDifferentDaysGiveTheSameBytes(t *testing.T) {
	clock := regexp.MustCompile(`"wall_clock":"[^"]*"`)
	replay := func(days int) map[string]string {
		b := newBench(t, `"update_policy":"every_event"`)
		b.Later(time.Duration(days) * 24 * time.Hour)
		for _, text := range []string{"I like oolong tea.", "I live in Oslo."} {
			b.Record(b.Turn("s1", text))
			require.Equal(t, abi.ReadinessReady, b.Wait().Status)
			b.dream()
		}
		files := b.Files()
		for path, text := range files {
			files[path] = clock.ReplaceAllString(text, "")
		}
		return files
	}
	one := replay(1)
	assert.Contains(t, one["memory/history.jsonl"], `"timestamp":"2026-01-12 09:01"`)
	assert.Contains(t, one["dreams/20260112-090100-1.jsonl"], `"created_at":"2026-01-12T09:01:00Z"`)
	assert.Equal(t, one, replay(200))
}

// TestDreamFollowsTheTimelineOfAReplay: a replay on another day, at any pace, has its runs wherever two hours of the
// timeline have passed, and none because the host's clock advances.
func TestDreamFollowsTheTimelineOfAReplay(t *testing.T) {
	for _, schedule := range []string{`"interval_h":2`, `"cron":"0 */2 * * *"`} {
		for _, pace := range []time.Duration{0, time.Second, 26 * time.Hour} {
			b := newBench(t, `"dream":{`+schedule+`}`)
			b.Later(200 * 24 * time.Hour)
			var cursors []string
			for _, at := range []string{"09:01", "09:30", "10:50", "11:40", "15:10"} {
				b.write(func(m *memory) {
					m.remember(entry{at: "2026-01-12 " + at, content: "- [durable] I like tea at " + at + "."}, maxSummary)
				})
				b.Later(pace)
				b.Idle()
				cursors = append(cursors, b.dreamt())
			}
			want := []string{"1", "1", "1", "4", "5"}
			if strings.Contains(schedule, "cron") {
				want = []string{"1", "1", "3", "3", "5"}
			}
			assert.Equal(t, want, cursors, "%s at a pace of %s", schedule, pace)
		}
	}
}
