package picoclaw_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/picoclaw"
)

// by changes the sender of a line.
func by(sender, line string) string {
	return strings.ReplaceAll(line, `"sender_id":"cron"`, `"sender_id":"`+sender+`"`)
}

const at = "2026-11-21T04:00:00Z"

func shared(o *picoclaw.Options) { o.Shared = true }

func TestAMemoryIsForTheFirstPersonWhoSpeaks(t *testing.T) {
	s, dir := new(slot), t.TempDir()
	a := startAt(t, dir, s)
	require.NotNil(t, a.call(by("ann", before(2, "sk_v1_ann", "t1", 1, "My PIN is 1234."))).modified(t))
	a.send(by("ann", ended("sk_v1_ann", "t1", at, "completed", "My PIN is 1234.", "Noted.")))
	for i := range 2 {
		require.Nil(t, a.call(by("bob", before(3+i, "sk_v1_bob", "t2", 1, "What is the PIN?"))).modified(t))
		a.send(by("bob", ended("sk_v1_bob", "t2", at, "completed", "What is the PIN?", "I do not know.")))
	}
	a.end()
	require.Equal(t, 1, strings.Count(a.log.String(), "no memory for this person: it belongs to somebody else"))
	require.Contains(t, a.log.String(), "--shared")

	// Bob speaks first to the next process: the memory stays Ann's.
	b := startAt(t, dir, s)
	require.Nil(t, b.call(by("bob", before(2, "sk_v1_bob", "t1", 1, "And now?"))).modified(t))
	require.NotNil(t, b.call(by("ann", before(3, "sk_v1_ann", "t1", 1, "And I?"))).modified(t))
	b.end()
	require.Equal(t, [][]string{{"My PIN is 1234.", "Noted."}}, contents(s))
}

func TestASharedMemoryIsForAll(t *testing.T) {
	s := new(slot)
	a := start(t, s, shared)
	for i, sender := range []string{"ann", "bob"} {
		require.NotNil(t, a.call(by(sender, before(2+i, "sk_v1_"+sender, "t1", 1, "hello"))).modified(t))
		a.send(by(sender, ended("sk_v1_"+sender, "t1", at, "completed", "hello", "Hello.")))
	}
	a.end()
	require.Len(t, s.told, 2)
	require.NotContains(t, a.log.String(), "no memory for this person")
}

// The same sender id on two channels means two people.
func TestAPlaceThatDoesNotTellPeopleApartIsNotEnough(t *testing.T) {
	s := new(slot)
	a := start(t, s, func(o *picoclaw.Options) { o.Scope = abi.MemoryScope{RunID: "{agent}", PersonaID: "{sender_id}"} })
	require.NotNil(t, a.call(by("7", before(2, "one", "t1", 1, "hello"))).modified(t))
	elsewhere := strings.ReplaceAll(by("7", before(3, "two", "t1", 1, "hello")), `"channel":"cli"`, `"channel":"irc"`)
	require.Nil(t, a.call(elsewhere).modified(t))
	require.NotNil(t, a.call(by("8", before(4, "three", "t1", 1, "hello"))).modified(t))
	a.end()
}

// Speakers without a sender id may be any number of people.
func TestWhoHasNoSenderIDHasNoMemory(t *testing.T) {
	s := new(slot)
	perPerson := func(o *picoclaw.Options) { o.Scope = abi.MemoryScope{RunID: "r", PersonaID: "{channel}-{sender_id}"} }
	a := start(t, s, perPerson)
	for i := range 2 {
		require.Nil(t, a.call(by("", before(2+i, "sk_v1_x", "t1", 1, "My PIN is 1234."))).modified(t))
		a.send(by("", ended("sk_v1_x", "t1", at, "completed", "My PIN is 1234.", "Noted.")))
	}
	a.end()
	require.Empty(t, s.told)
	require.Equal(t, 1, strings.Count(a.log.String(), "no memory for those whom PicoClaw gives no sender id"))

	b := start(t, s, perPerson, shared)
	require.NotNil(t, b.call(by("", before(2, "sk_v1_x", "t1", 1, "hello"))).modified(t))
	b.end()
}

// The answer to a job goes to a chat, which may belong to a person who was refused.
func TestAJobHasContextWhileNobodyElseWasRefused(t *testing.T) {
	s, dir := new(slot), t.TempDir()
	a := startAt(t, dir, s)
	job := func(id int) string { return before(id, "agent:cron-backup-1b2c", "t1", 1, "make the backup") }
	async := by("async:spawn", before(3, "agent:main:main", "t1", 1, "[System: async:spawn] found it"))
	require.NotNil(t, a.call(job(2)).modified(t), "a job claims nothing")
	require.NotNil(t, a.call(async).modified(t), "a sub-agent's result is nobody's, either")
	require.NotNil(t, a.call(by("ann", before(4, "one", "t1", 1, "hello"))).modified(t))
	require.NotNil(t, a.call(job(5)).modified(t))
	require.Nil(t, a.call(by("bob", before(6, "two", "t1", 1, "hello"))).modified(t))
	require.Nil(t, a.call(strings.ReplaceAll(job(7), `"t1"`, `"t2"`)).modified(t))
	a.end()
	b := startAt(t, dir, s)
	require.Nil(t, b.call(job(2)).modified(t), "also after a restart")
	b.end()
}

func TestAnOwnerWhoCannotBeReadIsNobody(t *testing.T) {
	s, dir := new(slot), t.TempDir()
	a := startAt(t, dir, s)
	require.NotNil(t, a.call(before(2, "one", "t1", 1, "hello")).modified(t))
	a.end()
	files, err := filepath.Glob(filepath.Join(dir, "people", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.WriteFile(files[0], []byte(`{`), 0o600))
	b := startAt(t, dir, s)
	require.Nil(t, b.call(before(2, "one", "t1", 1, "hello")).modified(t))
	b.end()
	require.Contains(t, b.log.String(), "whose memory this is cannot be read")
}
