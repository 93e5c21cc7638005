//go:build live

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/memhost/memhost/sdk"
)

// ./live runs these tests in front of a server that it starts; they need MEMHOST, the program, and HINDSIGHT_URL.

func TestLiveKit(t *testing.T) { checkKit(t, os.Getenv("MEMHOST"), os.Getenv("HINDSIGHT_URL"), "60s") }

// TestLiveParity records a conversation through memhost and asks 50 questions through memhost and directly: the results
// are the same, field by field. Scores fade with the age of a memory, so they may differ by a millionth.
func TestLiveParity(t *testing.T) {
	program, url := os.Getenv("MEMHOST"), os.Getenv("HINDSIGHT_URL")
	run(t, program, "build", "--compiler", "go")
	config := configure(t, url)
	var turns, questions []string
	animals := strings.Fields("cat dog owl fox hen goat mule toad crow swan")
	places := strings.Fields("Bergen Vienna Porto Ghent Turku")
	for i := range 50 {
		animal, place := animals[i%10], places[i/10]
		turns = append(turns, fmt.Sprintf(`{"role":"user","content":"My %s number %d moved to %s with a red blanket."}`, animal, i, place))
		questions = append(questions, fmt.Sprintf("Where did the %s %d go, to %s?", animal, i, place))
	}
	id := fmt.Sprintf("parity-%d", os.Getpid())
	file := t.TempDir() + "/turns.jsonl"
	if err := os.WriteFile(file, []byte("["+strings.Join(turns, ",")+"]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, program, "record", file, "--config", config, "--run", id, "--user", "ann", "--session", "s1", "--start", "2026-03-02T09:00:00+01:00")
	run(t, program, "readiness", "--config", config, "--run", id, "--user", "ann", "--timeout", "2m")
	bank := sdk.NativeID(idRules, "hindsight", "", id, "ann", "", "1")
	items := 0
	for _, question := range questions {
		var ours struct {
			Raw struct {
				Calls []struct{ Body map[string]any }
			}
		}
		out := run(t, program, "retrieve", question, "--config", config, "--run", id, "--user", "ann", "--json")
		if err := json.Unmarshal(out, &ours); err != nil || len(ours.Raw.Calls) != 1 {
			t.Fatalf("%v: %s", err, out)
		}
		body, _ := json.Marshal(map[string]any{"query": question, "include": map[string]any{"entities": nil}})
		answer, err := http.Post(url+"/v1/default/banks/"+bank+"/memories/recall", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		var theirs map[string]any
		err = json.NewDecoder(answer.Body).Decode(&theirs)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%v %s", err, answer.Status)
		}
		results, _ := theirs["results"].([]any)
		items += len(results)
		if !same(ours.Raw.Calls[0].Body, theirs) {
			t.Errorf("%s\nmemhost   %v\nHindsight %v", question, ours.Raw.Calls[0].Body, theirs)
		}
	}
	if items < len(questions) {
		t.Errorf("only %d results: equal emptiness proves nothing", items)
	}
	t.Logf("%d questions, %d results", len(questions), items)
}

func same(x, y any) bool {
	switch x := x.(type) {
	case map[string]any:
		y, ok := y.(map[string]any)
		for key := range x {
			ok = ok && same(x[key], y[key])
		}
		return ok && len(x) == len(y)
	case []any:
		y, ok := y.([]any)
		ok = ok && len(x) == len(y)
		for i := 0; ok && i < len(x); i++ {
			ok = same(x[i], y[i])
		}
		return ok
	case float64:
		y, ok := y.(float64)
		return ok && math.Abs(x-y) < 1e-6
	}
	return reflect.DeepEqual(x, y)
}
