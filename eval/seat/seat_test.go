package seat

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/subject"
	"github.com/memhost/memhost/internal/test/brief"
)

// behaviour is an environment variable that makes this test binary act as a subject.
const behaviour = "MEMHOST_TEST_SUBJECT"

func TestMain(m *testing.M) {
	if how := os.Getenv(behaviour); how != "" {
		beSubject(how)
		return
	}
	os.Exit(m.Run())
}

// beSubject is a subject that echoes, or misbehaves in one way.
func beSubject(how string) {
	in := bufio.NewScanner(os.Stdin)
	say := func(text string) {
		line, _ := json.Marshal(map[string]any{"type": "agent", "text": text, "usage": map[string]int{"prompt_tokens": 3}})
		fmt.Printf("%s\n", line)
	}
	switch how {
	case "chat":
		serveChat()
	case "deaf":
		time.Sleep(time.Hour)
	case "exits":
		fmt.Fprintln(os.Stderr, "no licence key")
		os.Exit(3)
	}
	for in.Scan() {
		var l struct{ Type, Text string }
		if json.Unmarshal(in.Bytes(), &l) != nil {
			os.Exit(4)
		}
		switch {
		case l.Type == "start" || l.Type == "end" && how != "stays" && how != "ends badly":
		case l.Type == "end" && how == "stays":
			time.Sleep(time.Hour)
		case l.Type == "end":
			os.Exit(5)
		case how == "hangs":
			time.Sleep(time.Hour)
		case how == "rubbish":
			fmt.Println("Loading model ...")
		case how == "another line":
			fmt.Println(`{"type":"log","text":"hello"}`)
		case how == "no text":
			fmt.Println(`{"type":"agent"}`)
		case how == "a flood":
			for {
				fmt.Print(strings.Repeat("x", 1<<16))
			}
		case how == "closes":
			os.Stdout.Close()
			time.Sleep(time.Hour)
		case how == "exits later":
			os.Exit(6)
		case how == "leaves a child":
			child := exec.Command(os.Args[0])
			child.Env, child.Stdout, child.Stderr = append(os.Environ(), behaviour+"=deaf"), os.Stdout, os.Stderr
			_ = child.Start()
			say("hello")
		default:
			say(l.Text + " from " + os.Getenv("MEMHOST_PERSONA_ID") + " in " + os.Getenv("MEMHOST_WORKSPACE"))
		}
	}
}

func serveChat() {
	_ = http.ListenAndServe(net.JoinHostPort("127.0.0.1", os.Args[1]), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%q}}]}`, r.URL.Path+" "+fmt.Sprint(strings.Count(string(text),
			`"role"`)))
	}))
}

// of returns a seat for this test binary.
func of(t *testing.T, how, kind string, args ...string) subject.Seat {
	t.Helper()
	t.Setenv(behaviour, how)
	timeout := int64(60_000) // a busy machine is not a failure
	if slices.Contains([]string{"hangs", "deaf", "closes", "stays"}, how) {
		timeout = 2000
	}
	l := &lab.Lab{Subject: &lab.Subject{Seat: kind, Command: append([]string{os.Args[0]}, args...), Model: lab.Model{TimeoutMS: timeout}}}
	s, err := New(l, t.TempDir(), os.Getenv)
	require.NoError(t, err)
	return s
}

func starting(t *testing.T) *subject.Start {
	return &subject.Start{Type: "start", Session: "s", Scope: abi.MemoryScope{RunID: "r", PersonaID: "ann"},
		Door: subject.Address{HTTP: "http://127.0.0.1:1", Token: "scoped"}, Workspace: t.TempDir(),
		Put: func([]byte) (string, error) { return "hash", nil }}
}

func TestACommandConverses(t *testing.T) {
	t.Setenv("MEMHOST_TOKEN", "the slot's own")
	start := starting(t)
	s, err := of(t, "echoes", lab.SeatCommand).Sit(t.Context(), start)
	require.NoError(t, err)
	for _, text := range []string{"one", "two\nlines", "ünïcode"} {
		answer, err := s.Say(t.Context(), text)
		require.NoError(t, err)
		assert.Equal(t, text+" from ann in "+start.Workspace, answer.Text)
		assert.Equal(t, int64(3), answer.Usage.PromptTokens)
	}
	assert.Empty(t, s.End(t.Context()))
}

// Whatever a subject does, the conversation ends in limited time with an error of the subject, and no process is left.
func TestASubjectThatFailsIsBounded(t *testing.T) {
	brief.Leave(t)
	for how, c := range map[string]struct{ say, end string }{
		"hangs":          {"did not answer in 2s", ""},
		"deaf":           {"did not answer in 2s", ""},
		"exits":          {"the subject exited: exit status 3; it wrote: no licence key", ""},
		"exits later":    {"the subject exited: exit status 6", ""},
		"rubbish":        {`wrote "Loading model ..."`, ""},
		"another line":   {`want a line {"type":"agent"`, ""},
		"no text":        {`want a line {"type":"agent"`, ""},
		"a flood":        {"a line of more than 1048576 bytes", ""},
		"closes":         {"did not answer in 2s", ""},
		"stays":          {"", "not_exited"},
		"ends badly":     {"", "exit_status"},
		"leaves a child": {"", "left_running"},
	} {
		t.Run(how, func(t *testing.T) {
			s, err := of(t, how, lab.SeatCommand).Sit(t.Context(), starting(t))
			if err == nil {
				if c.say != "" {
					_, err = s.Say(t.Context(), "hello")
				} else if _, err := s.Say(t.Context(), "hello"); err != nil {
					t.Fatal(err)
				}
				breaches := s.End(t.Context())
				if c.end == "" {
					assert.Empty(t, breaches)
				} else if assert.Len(t, breaches, 1) {
					assert.Equal(t, c.end, breaches[0].Kind, breaches[0].Detail)
				}
				select {
				case <-s.(*lineSubject).exited:
				default:
					t.Error("the process is still there")
				}
			}
			if c.say != "" {
				require.ErrorContains(t, err, c.say)
				require.True(t, subject.IsFailure(err))
			}
		})
	}
}

func TestAChatConverses(t *testing.T) {
	s, err := of(t, "chat", lab.SeatChat, "{port}").Sit(t.Context(), starting(t))
	require.NoError(t, err)
	for n, text := range []string{"one", "two"} {
		answer, err := s.Say(t.Context(), text)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("/v1/chat/completions %d", 2*n+1), answer.Text)
	}
	assert.Empty(t, s.End(t.Context()))
	_, err = of(t, "exits", lab.SeatChat, "{port}").Sit(t.Context(), starting(t))
	require.ErrorContains(t, err, "no licence key")
	require.True(t, subject.IsFailure(err))
}

func TestAProgramThatDoesNotExistIsNoSubject(t *testing.T) {
	for _, kind := range []string{lab.SeatCommand, lab.SeatChat} {
		l := &lab.Lab{Subject: &lab.Subject{Seat: kind, Command: []string{"{lab}/nothing"}}}
		_, err := New(l, t.TempDir(), os.Getenv)
		require.ErrorContains(t, err, "subject.command: ")
		require.Equal(t, abi.CodeInvalidArgument, abi.AsError(err).Code)
	}
}
