package contextmanager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/examples/contextmanager"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
)

func TestMain(m *testing.M) { testcache.Run(m) }

// openSlot opens a host in a folder of its own, with a built-in provider. stop closes it.
func openSlot(provider, block string) (slot *host.Slot, stop func()) {
	ctx := context.Background()
	h, err := host.New(ctx, host.Options{DataDir: testcache.Folder(), CacheDir: testcache.Dir()})
	if err != nil {
		log.Fatal(err)
	}
	module, _ := plugins.Find(provider)
	slot, err = h.Open(ctx, host.ProviderConfig{Name: provider, Module: module.Wasm, Source: "builtin",
		Block: abi.Raw(block)})
	if err != nil {
		log.Fatal(err)
	}
	return slot, func() {
		if err := errors.Join(slot.Close(ctx), h.Close(ctx)); err != nil {
			log.Fatal(err)
		}
	}
}

// clock gives a minute more at each look.
func clock() func() time.Time {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	return func() time.Time { now = now.Add(time.Minute); return now }
}

// manager is a context manager for ann. The agent shows the running session itself, so the block leaves that out.
func manager(slot host.Contract) *contextmanager.Manager {
	return &contextmanager.Manager{Slot: slot, Scope: abi.MemoryScope{RunID: "home", PersonaID: "ann"}, Wait: time.Minute,
		Logger: hclog.NewNullLogger(), Now: clock()}
}

// parrot is a model that says what it was shown.
func parrot(_ context.Context, prompt []contextmanager.Message) (string, error) {
	last := prompt[len(prompt)-1].Content
	question, memory, _ := strings.Cut(last, "\n\n")
	return fmt.Sprintf("%d messages, %q, memory: %t", len(prompt), question, strings.Contains(memory, "oolong")), nil
}

// An agent with a slot: what was said in one conversation is known in the next one.
func Example() {
	slot, stop := openSlot("full_history", `{"current_session": "exclude"}`)
	defer stop()
	agent := &contextmanager.Agent{Memory: manager(slot), Model: parrot, System: "Be brief.", Budget: 400}
	for _, message := range []string{"I like oolong tea.", "What did I say?", "/clear", "Which tea do I like?"} {
		answer, err := agent.Turn(context.Background(), "chat 1", message)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(answer)
	}
	// Output:
	// 2 messages, "I like oolong tea.", memory: false
	// 4 messages, "What did I say?", memory: false
	// A new conversation.
	// 2 messages, "Which tea do I like?", memory: true
}

func TestAnotherProviderChangesNoLineOfTheAgent(t *testing.T) {
	slot, stop := openSlot("full_history", `{"current_session": "exclude"}`)
	defer stop()
	agent := &contextmanager.Agent{Memory: manager(slot), Model: parrot, System: "Be brief.", Budget: 400}
	ctx := context.Background()
	ask := func(session string) string {
		answer, err := agent.Turn(ctx, session, "oolong?")
		require.NoError(t, err)
		return answer
	}
	require.Contains(t, ask("one"), "memory: false")
	require.Contains(t, ask("two"), "memory: true")
	nothing, _ := plugins.Find("no_memory")
	_, err := slot.Swap(ctx, host.ProviderConfig{Name: "no_memory", Module: nothing.Wasm})
	require.NoError(t, err)
	require.Contains(t, ask("three"), "memory: false")
}

func TestWhatIsRecordedIsWhatWasSaid(t *testing.T) {
	slot, stop := openSlot("full_history", `{}`)
	defer stop()
	m := manager(slot)
	agent := &contextmanager.Agent{Memory: m, Model: parrot, System: "Be brief.", Budget: 4000}
	ctx := context.Background()
	for range 3 {
		_, err := agent.Turn(ctx, "chat", "oolong?")
		require.NoError(t, err)
	}
	got := m.Assemble(ctx, "other", "x", 4000)
	require.Equal(t, 1, strings.Count(got.Memory, "<memory-context "), "memory is not fed its own output")
	require.Equal(t, 3, strings.Count(got.Memory, "user: oolong?\n"))
	require.Empty(t, got.History)

	require.NoError(t, m.Forget(ctx))
	require.Empty(t, m.Assemble(ctx, "other", "x", 4000).Memory)
}

func TestATurnOutlivesItsMemory(t *testing.T) {
	slot, stop := openSlot("no_memory", `{}`)
	stop() // the slot is closed
	var said bytes.Buffer
	m := manager(slot)
	m.Logger = hclog.New(&hclog.LoggerOptions{Output: &said})
	agent := &contextmanager.Agent{Memory: m, Model: parrot, System: "Be brief.", Budget: 400}
	answer, err := agent.Turn(context.Background(), "chat", "oolong?")
	require.NoError(t, err)
	require.Contains(t, answer, `2 messages, "oolong?"`)
	require.Contains(t, said.String(), "this turn has no memory")
	require.Contains(t, said.String(), "the turn was not recorded")
	require.ErrorIs(t, m.Forget(context.Background()), &abi.Error{Code: abi.CodeUnavailable})
}

// unreliableSlot is a slot that a test can take down.
type unreliableSlot struct {
	host.Contract
	down bool
}

func (u *unreliableSlot) RecordEvent(ctx context.Context, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	receipt, err := u.Contract.RecordEvent(ctx, e)
	if u.down && err == nil { // it has the event, and the answer is lost
		return nil, abi.NewError(abi.CodeUnavailable, "down")
	}
	return receipt, err
}

func TestATurnThatFailedComesWithTheNextOneAndOnce(t *testing.T) {
	slot, stop := openSlot("full_history", `{}`)
	defer stop()
	u := &unreliableSlot{Contract: slot, down: true}
	m := manager(u)
	agent := &contextmanager.Agent{Memory: m, Model: parrot, System: "Be brief.", Budget: 4000}
	ctx := context.Background()
	for _, message := range []string{"one", "two", "three"} {
		u.down = message != "three"
		_, err := agent.Turn(ctx, "chat", message)
		require.NoError(t, err)
	}
	memory := m.Assemble(ctx, "other", "x", 4000).Memory
	var said []string
	for _, line := range strings.Split(memory, "\n") {
		if _, text, ok := strings.Cut(line, "] user: "); ok {
			said = append(said, text)
		}
	}
	require.Equal(t, []string{"one", "two", "three"}, said)
}

func TestATurnWithoutAnAnswerIsNotRecorded(t *testing.T) {
	slot, stop := openSlot("full_history", `{}`)
	defer stop()
	m := manager(slot)
	agent := &contextmanager.Agent{Memory: m, System: "Be brief.", Budget: 400,
		Model: func(context.Context, []contextmanager.Message) (string, error) { return "", errors.New("no model") }}
	_, err := agent.Turn(context.Background(), "chat", "oolong?")
	require.ErrorContains(t, err, "no model")
	got := m.Assemble(context.Background(), "chat", "x", 400)
	require.Empty(t, got.Memory)
	require.Empty(t, got.History)
}
