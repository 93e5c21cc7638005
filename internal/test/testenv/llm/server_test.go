package llm

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func serve(t *testing.T) (*Server, string) {
	s := New(Options{Dimensions: 64, Now: func() time.Time { return time.Unix(1800000000, 0) }})
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.ClearFaults(); h.Close() })
	return s, h.URL
}

// head of an answer whose body has been read.
type head struct {
	StatusCode int
	Header     http.Header
}

func post(t *testing.T, url, body string) (head, string) {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return head{res.StatusCode, res.Header}, string(text)
}

const extraction = `{"model":"m","response_format":{"type":"json_object"},"messages":[{"role":"system","content":"x"},{"role":"user","content":[{"type":"text","text":"## New Messages\nuser: I like tea.\n\n## Observation Date\nx"}]}]}`

func TestChatEmbeddingsModelsAndCounts(t *testing.T) {
	s, url := serve(t)
	_, body := post(t, url+"/v1/chat/completions", extraction)
	require.Contains(t, body, `I like tea.`)
	require.Contains(t, body, `"finish_reason":"stop"`)
	_, body = post(t, url+"/v1/embeddings", `{"model":"e","input":["a","b"],"encoding_format":"base64"}`)
	var e struct{ Data []struct{ Embedding string } }
	require.NoError(t, json.Unmarshal([]byte(body), &e))
	raw, err := base64.StdEncoding.DecodeString(e.Data[1].Embedding)
	require.NoError(t, err)
	require.Len(t, raw, 4*64)
	res, _ := post(t, url+"/v1/embeddings", `{"model":"e","input":[""]}`)
	require.Equal(t, 400, res.StatusCode, "as OpenAI: an empty input is refused")
	require.Equal(t, Counts{LLM: 1, Embeddings: 2, ByPurpose: map[string]int{"mem0.extract": 1, "embeddings": 2}},
		s.Counts())
	_, body = post(t, url+"/v1/rerank", `{"query":"tea","documents":["a cat","green tea"],"top_n":1}`)
	require.Contains(t, body, `"results":[{"index":1,`)
	_, body = post(t, url+"/v1/responses", `{"model":"m","input":[{"role":"user","content":"<CURRENT MESSAGE>mara: I like tea.</CURRENT MESSAGE>"}],"text":{"format":{"type":"json_schema","name":"ExtractedEntities","schema":{}}}}`)
	require.Contains(t, body, `\"name\":\"tea\"`)
	models, err := http.Get(url + "/v1/models")
	require.NoError(t, err)
	require.NoError(t, models.Body.Close())
	require.Equal(t, 200, models.StatusCode)
}

func TestStreamEndsWithDone(t *testing.T) {
	_, url := serve(t)
	res, body := post(t, url+"/chat/completions", strings.Replace(extraction, `"model"`, `"stream":true,"model"`, 1))
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	require.True(t, strings.HasSuffix(body, "data: [DONE]\n\n"))
	var text strings.Builder
	for _, line := range strings.Split(body, "\n") {
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &chunk) == nil && len(chunk.Choices) > 0 {
			text.WriteString(chunk.Choices[0].Delta.Content)
		}
	}
	require.True(t, json.Valid([]byte(text.String())), text.String())
}

func TestEveryWayToFailInsideAnOrdinaryAnswer(t *testing.T) {
	tool := `{"model":"m","tools":[{"type":"function","function":{"name":"save_memory"}}],"tool_choice":{"type":"function"},"messages":[{"role":"user","content":"[2026-01-01 10:00] USER: I like tea."}]}`
	for _, c := range []struct {
		mode    Mode
		request string
		want    string // part of the body
		not     string
	}{
		{CutAnswer, extraction, `"finish_reason":"stop"`, `attributed_to`},
		{Length, extraction, `"finish_reason":"length"`, ``},
		{FinishError, extraction, `"finish_reason":"error"`, `tea`},
		{ContentFilter, extraction, `"finish_reason":"content_filter"`, `tea`},
		{NoChoice, extraction, `"choices":[]`, `tea`},
		{WrongTool, tool, `launch_rocket`, `save_memory`},
		{NoTool, tool, `everything is in order`, `tool_calls`},
		{ToolAnswer, extraction, `read_file`, `tea`},
		{Empty, extraction, `"content":""`, `tea`},
		{Thinking, extraction, `\u003c/think\u003e"`, `tea`},
		{ThinkingFirst, extraction, `\u003c/think\u003e\n{`, ``},
		{ThinkingOpen, tool, `\u003cthink\u003e`, `/think`},
		{Prose, extraction, `everything is in order`, `tea`},
		{Fenced, extraction, "```json", ``},
		{BareList, extraction, `[\"a\",\"b\"]`, `tea`},
	} {
		t.Run(string(c.mode), func(t *testing.T) {
			s, url := serve(t)
			require.NoError(t, s.Fail(Fault{Mode: c.mode, Times: 1}))
			res, body := post(t, url+"/v1/chat/completions", c.request)
			require.Equal(t, 200, res.StatusCode)
			require.Contains(t, body, c.want)
			if c.not != "" {
				require.NotContains(t, body, c.not)
			}
			_, body = post(t, url+"/v1/chat/completions", c.request)
			require.Contains(t, body, "tea", "once only")
		})
	}
	t.Run("say", func(t *testing.T) {
		s, url := serve(t)
		require.NoError(t, s.Fail(Fault{Mode: Say, Content: `["x"]`}))
		_, body := post(t, url+"/v1/chat/completions", tool)
		require.Contains(t, body, `"arguments":"[\"x\"]"`)
	})
}

func TestEveryWayToSpoilTheExchange(t *testing.T) {
	t.Run("status with Retry-After, second of three", func(t *testing.T) {
		s, url := serve(t)
		require.NoError(t, s.Fail(Fault{Purpose: "mem0", Mode: Status, Status: 429, RetryAfter: 2, After: 1, Times: 1}))
		var statuses []int
		for range 3 {
			res, _ := post(t, url+"/v1/chat/completions", extraction)
			statuses = append(statuses, res.StatusCode)
			if res.StatusCode == http.StatusTooManyRequests {
				require.Equal(t, "2", res.Header.Get("Retry-After"))
			}
		}
		require.Equal(t, []int{200, 429, 200}, statuses)
		res, _ := post(t, url+"/v1/embeddings", `{"input":"a"}`)
		require.Equal(t, 200, res.StatusCode, "another purpose")
	})
	t.Run("down", func(t *testing.T) {
		s, url := serve(t)
		require.NoError(t, s.Fail(Fault{Mode: Down}))
		_, err := http.Post(url+"/v1/embeddings", "application/json", strings.NewReader(`{"input":"a"}`)) //nolint:bodyclose // there is none
		require.Error(t, err)
	})
	t.Run("slow until the client goes", func(t *testing.T) {
		s, url := serve(t)
		require.NoError(t, s.Fail(Fault{Mode: Slow}))
		ctx, cancel := context.WithCancel(context.Background())
		failed := make(chan error, 1)
		go func() {
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions",
				strings.NewReader(extraction))
			_, err := http.DefaultClient.Do(req) //nolint:bodyclose // there is none
			failed <- err
		}()
		require.Eventually(t, func() bool { return len(s.Log()) == 1 }, 5*time.Second, time.Millisecond)
		cancel()
		require.ErrorIs(t, <-failed, context.Canceled)
	})
	t.Run("hold until the fault is removed", func(t *testing.T) {
		s, url := serve(t)
		require.NoError(t, s.Fail(Fault{Mode: Hold}))
		answered := make(chan string, 1)
		go func() { _, body := post(t, url+"/v1/chat/completions", extraction); answered <- body }()
		require.Eventually(t, func() bool { return len(s.Log()) == 1 }, 5*time.Second, time.Millisecond)
		require.Empty(t, answered)
		s.ClearFaults()
		require.Contains(t, <-answered, "I like tea.")
	})
	t.Run("cut body", func(t *testing.T) {
		s, url := serve(t)
		require.NoError(t, s.Fail(Fault{Mode: CutBody}))
		res, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(extraction))
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.False(t, json.Valid(body))
	})
	t.Run("no forced tool", func(t *testing.T) {
		s, url := serve(t)
		require.NoError(t, s.Fail(Fault{Mode: NoForcedTool}))
		with := `{"model":"m","tools":[{"function":{"name":"save_memory"}}],"tool_choice":"%","messages":[]}`
		res, body := post(t, url+"/v1/chat/completions", strings.Replace(with, "%", "required", 1))
		require.Equal(t, 400, res.StatusCode)
		require.Contains(t, body, "tool_choice")
		res, _ = post(t, url+"/v1/chat/completions", strings.Replace(with, "%", "auto", 1))
		require.Equal(t, 200, res.StatusCode)
	})
	t.Run("dimension", func(t *testing.T) {
		s, url := serve(t)
		require.NoError(t, s.Fail(Fault{Mode: Dimension, Dimension: 3}))
		_, body := post(t, url+"/v1/embeddings", `{"input":"a"}`)
		var e struct {
			Data []struct{ Embedding []float32 }
		}
		require.NoError(t, json.Unmarshal([]byte(body), &e))
		require.Len(t, e.Data[0].Embedding, 3)
	})
}

func TestAdminRoutes(t *testing.T) {
	_, url := serve(t)
	res, _ := post(t, url+"/admin/faults", `{"mode":"status","status":401}`)
	require.Equal(t, 204, res.StatusCode)
	res, _ = post(t, url+"/v1/chat/completions", extraction)
	require.Equal(t, 401, res.StatusCode)
	res, body := post(t, url+"/admin/faults", `[{"mode":"explode"}]`)
	require.Equal(t, 400, res.StatusCode)
	require.Contains(t, body, "explode")
	req, _ := http.NewRequest(http.MethodDelete, url+"/admin/faults", nil)
	cleared, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, cleared.Body.Close())
	res, _ = post(t, url+"/v1/chat/completions", extraction)
	require.Equal(t, 200, res.StatusCode)
	shown, err := http.Get(url + "/admin/log")
	require.NoError(t, err)
	defer shown.Body.Close()
	log, _ := io.ReadAll(shown.Body)
	require.Equal(t, 2, bytes.Count(log, []byte(`"purpose":"mem0.extract"`)))
}

func TestAModelsVectorsAreFilledToTheLengthThatIsAskedFor(t *testing.T) {
	known := func(_ context.Context, texts []string) ([][]float32, error) {
		vectors := make([][]float32, len(texts))
		for i, text := range texts {
			vectors[i] = []float32{3, 4}
			switch text {
			case "unknown":
				vectors[i] = []float32{0, 0}
			case "broken":
				return nil, errors.New("the model is gone")
			}
		}
		return vectors, nil
	}
	s := New(Options{Embed: known})
	vectors, err := s.embed(t.Context(), []string{"cat", "unknown"}, 4)
	require.NoError(t, err)
	require.Equal(t, [][]float32{{0.6, 0.8, 0, 0}, Embed("unknown", 4)}, vectors)
	cut, err := s.embed(t.Context(), []string{"cat"}, 1)
	require.NoError(t, err)
	require.Equal(t, [][]float32{{1}}, cut)

	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/embeddings", strings.NewReader(`{"input": ["broken"]}`)))
	require.Equal(t, 503, w.Code)
	require.Contains(t, w.Body.String(), "the model is gone")
}
