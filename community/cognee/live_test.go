//go:build live

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/memhost/memhost/sdk"
)

// ./live runs these tests in front of a server that it starts; they need MEMHOST, the program, COGNEE_URL and
// COGNEE_API_KEY.

func TestLiveKit(t *testing.T) { checkKit(t, os.Getenv("MEMHOST"), os.Getenv("COGNEE_URL"), "120s") }

// native sends a request to Cognee directly.
func native(t *testing.T, method, path string, body any, into any) {
	t.Helper()
	text, _ := json.Marshal(body)
	request, err := http.NewRequest(method, os.Getenv("COGNEE_URL")+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("x-api-key", os.Getenv("COGNEE_API_KEY"))
	request.Header.Set("content-type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ = io.ReadAll(answer.Body)
	if err := json.Unmarshal(text, into); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %v: %s", method, path, answer.Status, err, text)
	}
}

// TestLiveParity records a conversation through memhost and asks 50 questions through memhost and directly: the results
// are the same, field by field.
func TestLiveParity(t *testing.T) {
	program, url := os.Getenv("MEMHOST"), os.Getenv("COGNEE_URL")
	run(t, program, "build", "--compiler", "go")
	config := configure(t, url)
	var turns, questions []string
	animals := strings.Fields("cat dog owl fox hen goat mule toad crow swan")
	places := strings.Fields("Bergen Vienna Porto Ghent Turku")
	for i := range 50 {
		animal, place := animals[i%10], places[i/10]
		if i%5 == 0 {
			turns = append(turns, fmt.Sprintf(`{"role":"user","content":"My %s number %d moved to %s with a red blanket."}`, animal, i, place))
		}
		questions = append(questions, fmt.Sprintf("Where did the %s %d go, to %s?", animal, i, place))
	}
	id := fmt.Sprintf("parity-%d", os.Getpid())
	file := t.TempDir() + "/turns.jsonl"
	if err := os.WriteFile(file, []byte("["+strings.Join(turns, ",")+"]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, program, "record", file, "--config", config, "--run", id, "--user", "ann", "--session", "s1", "--start", "2026-03-02T09:00:00+01:00")
	run(t, program, "readiness", "--config", config, "--run", id, "--user", "ann", "--timeout", "5m")
	name := sdk.NativeID(idRules, "cognee", "", id, "ann", "", "1")
	items := 0
	for _, question := range questions {
		var ours struct {
			Raw struct {
				Calls []struct{ Body []any }
			}
		}
		out := run(t, program, "retrieve", question, "--config", config, "--run", id, "--user", "ann", "--json")
		if err := json.Unmarshal(out, &ours); err != nil || len(ours.Raw.Calls) != 1 {
			t.Fatalf("%v: %s", err, out)
		}
		var theirs []any
		native(t, "POST", "/api/v1/search", map[string]any{"search_type": "CHUNKS", "datasets": []string{name},
			"query": question, "top_k": 15}, &theirs)
		for _, one := range theirs {
			list, _ := one.(map[string]any)["search_result"].([]any)
			items += len(list)
		}
		if !reflect.DeepEqual(ours.Raw.Calls[0].Body, theirs) {
			t.Errorf("%s\nmemhost %v\nCognee  %v", question, ours.Raw.Calls[0].Body, theirs)
		}
	}
	if items < len(questions) {
		t.Errorf("only %d results: equal emptiness proves nothing", items)
	}
	t.Logf("%d questions, %d results", len(questions), items)
}

// TestLiveFailure lets the model refuse the key, which Cognee does not try again: the event is failed, by name, and the
// next one runs both. It needs the stub that ./live starts, at COGNEE_MODEL_URL.
func TestLiveFailure(t *testing.T) {
	program, model := os.Getenv("MEMHOST"), os.Getenv("COGNEE_MODEL_URL")
	if model == "" {
		t.Skip("no COGNEE_MODEL_URL: a model that can be made to fail")
	}
	run(t, program, "build", "--compiler", "go")
	config, id := configure(t, os.Getenv("COGNEE_URL")), fmt.Sprintf("failure-%d", os.Getpid())
	faults := func(method, body string) {
		request, _ := http.NewRequest(method, model+"/admin/faults", strings.NewReader(body))
		answer, err := http.DefaultClient.Do(request)
		if err != nil || answer.StatusCode >= 300 {
			t.Fatalf("faults: %v %v", answer, err)
		}
		_ = answer.Body.Close()
	}
	record := func(text string) {
		file := t.TempDir() + "/turns.jsonl"
		if err := os.WriteFile(file, []byte(`[{"role":"user","content":"`+text+`"}]`+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		run(t, program, "record", file, "--config", config, "--run", id, "--user", "ann", "--session", "s1", "--start", "2026-03-02T09:00:00+01:00")
	}
	status := func() (status string, failed int) {
		var ready struct {
			Status   string
			EventIDs struct{ Failed []string } `json:"event_ids"`
		}
		// It exits with an error unless everything is ready.
		out, _ := exec.Command(program, "readiness", "--config", config, "--run", id, "--user", "ann", "--json").Output()
		if err := json.Unmarshal(out, &ready); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return ready.Status, len(ready.EventIDs.Failed)
	}
	until := func(want string) (failed int) {
		for end := time.Now().Add(5 * time.Minute); ; time.Sleep(2 * time.Second) {
			said, failed := status()
			if said == want {
				return failed
			}
			if time.Now().After(end) {
				t.Fatalf("readiness is %s after 5 minutes, want %s", said, want)
			}
		}
	}
	record("My fox is called Amber.") // Cognee tries the model out with the first document
	until("ready")
	t.Cleanup(func() { faults("DELETE", "") })
	faults("POST", `[{"purpose":"cognee.graph","mode":"status","status":401}]`)
	record("My owl is called Brisk.")
	if n := until("failed"); n != 1 {
		t.Errorf("%d events are named as failed, want 1", n)
	}
	faults("DELETE", "")
	record("My owl likes mice.")
	for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Second) {
		out := run(t, program, "retrieve", "What is my owl called?", "--config", config, "--run", id, "--user", "ann")
		if strings.Contains(string(out), "Brisk") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the failed event is not found after the next run: %s", out)
		}
	}
}
