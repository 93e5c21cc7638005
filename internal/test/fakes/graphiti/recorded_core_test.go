package graphiti_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/fakes/graphiti"
	"github.com/memhost/memhost/internal/test/recorded"
)

// libraryCall is one line of testdata/core.jsonl: what graphiti-core 0.29.3 answered in process on Neo4j 5.26.2,
// embeddings left out and lists cut ("... 9 more"). The gateway hands these answers on.
type libraryCall struct {
	Name   string
	Args   map[string]any
	Result map[string]any
}

// TestTheGatewayAnswersAsTheLibrary holds the fake gateway to the library: the same facts from the same episodes, the
// same shapes, and of every recipe the same lists with the same kind of scores.
func TestTheGatewayAnswersAsTheLibrary(t *testing.T) {
	fake := graphiti.New(graphiti.Options{Now: func() time.Time {
		return time.Date(2026, 11, 21, 5, 20, 0, 0, time.UTC)
	}})
	gateway := fake.Gateway()
	ask := func(t *testing.T, path string, body any) (int, map[string]any) {
		t.Helper()
		text, err := json.Marshal(body)
		require.NoError(t, err)
		request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(text)))
		request.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		gateway.ServeHTTP(w, request)
		var answer map[string]any
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer), w.Body.String())
		return w.Code, answer
	}
	center := ""
	n := 0
	for _, x := range recorded.Read[libraryCall](t, "testdata/core.jsonl") {
		n++
		t.Run(x.Name, func(t *testing.T) {
			switch {
			case strings.HasPrefix(x.Name, "add."):
				episode := x.Result["episode"].(map[string]any)
				status, ours := ask(t, "/v1/groups/"+fmt.Sprint(episode["group_id"])+"/episodes",
					map[string]any{"name": episode["name"], "episode_body": episode["content"],
						"source": episode["source"], "source_description": episode["source_description"],
						"reference_time": episode["valid_at"]})
				require.Equal(t, 200, status, ours)
				sameAnswer(t, x.Result, ours)
			case strings.HasPrefix(x.Name, "triplet."):
				edge := x.Result["edges"].([]any)[0].(map[string]any)
				names := []string{}
				for _, node := range x.Result["nodes"].([]any) {
					names = append(names, fmt.Sprint(node.(map[string]any)["name"]))
				}
				status, ours := ask(t, "/v1/groups/ctr/triplets",
					map[string]any{"source_node": map[string]any{"name": names[0]},
						"target_node": map[string]any{"name": names[1]},
						"edge": map[string]any{"name": edge["name"], "fact": edge["fact"],
							"valid_at": edge["valid_at"]}})
				require.Equal(t, 200, status, ours)
				sameAnswer(t, x.Result, ours)
			default:
				if center == "" {
					center = alice(t, ask)
				}
				sameSearch(t, x, center, ask)
			}
		})
	}
	require.Greater(t, n, 20)
}

// sameAnswer compares the answer of a write: shapes, facts and what was closed. The gateway adds the group and three
// lists, and leaves communities out.
func sameAnswer(t *testing.T, theirs, ours map[string]any) {
	t.Helper()
	for _, name := range []string{"created_edge_uuids", "reasserted_edge_uuids", "invalidated_edge_uuids"} {
		assert.IsType(t, []any{}, ours[name])
	}
	for _, kind := range []string{"episode", "nodes", "edges"} {
		if theirs[kind] != nil {
			sameShape(t, "/"+kind, theirs[kind], ours[kind])
		}
	}
	facts := func(answer map[string]any) []string {
		list := []string{}
		for _, e := range answer["edges"].([]any) {
			edge := e.(map[string]any)
			list = append(list, fmt.Sprint(edge["fact"], " closed ", edge["invalid_at"] != nil,
				edge["expired_at"] != nil))
		}
		return list
	}
	assert.Equal(t, facts(theirs), facts(ours))
	assert.Len(t, ours["nodes"], len(theirs["nodes"].([]any)))
}

// alice tells what the recorded searches were made over, and gives her node's id.
func alice(t *testing.T, ask func(*testing.T, string, any) (int, map[string]any)) string {
	t.Helper()
	uuid := ""
	for i, said := range []string{"prefer aisle seats", "live in Berlin", "work at Acme", "own a red bike",
		"drink black coffee", "like green tea", "bought a tent in Berlin",
		"want a new camera", "like jazz concerts", "own a cat named Tom", "prefer trains in Berlin",
		"drink tea in Berlin"} {
		status, answer := ask(t, "/v1/groups/sa/episodes",
			map[string]any{"name": fmt.Sprint("s", i), "episode_body": "Alice(user): I " + said + ".",
				"reference_time": fmt.Sprintf("2025-03-%02dT09:00:00Z", 1+i)})
		require.Equal(t, 200, status, answer)
		uuid = answer["edges"].([]any)[0].(map[string]any)["source_node_uuid"].(string)
	}
	for i, said := range []string{"like tea", "like tea", "like green tea in Berlin"} {
		ask(t, "/v1/groups/em/episodes", map[string]any{"name": fmt.Sprint("m", i), "episode_body": "Eli(user): I " +
			said + ".", "reference_time": fmt.Sprintf("2025-03-%02dT09:00:00Z", 1+i)})
	}
	ask(t, "/v1/groups/ctr2/triplets", map[string]any{"source_node": map[string]any{"name": "Kim"},
		"edge":        map[string]any{"name": "LIVES_IN", "fact": "Kim lives in Rome"},
		"target_node": map[string]any{"name": "Rome"}})
	ask(t, "/v1/groups/sa/communities", map[string]any{})
	return uuid
}

// sameSearch compares one recipe: which lists are filled, whether scores and items are as many, and what the scores
// range over.
func sameSearch(t *testing.T, x libraryCall, center string, ask func(*testing.T, string, any) (int, map[string]any)) {
	t.Helper()
	recipe := fmt.Sprint(x.Args["config"])
	body := map[string]any{"query": "Where does Alice live in Berlin? tea", "recipe": recipe}
	group := "sa"
	switch {
	case x.Name == "recipe.EDGE_EPISODE_MENTIONS.uneven":
		group, body["query"] = "em", "Eli tea"
	case x.Name == "recipe.NODE_EPISODE_MENTIONS.unmentioned":
		group, body["query"] = "ctr2", "Kim Rome"
	case strings.HasPrefix(recipe, "COMMUNITY_") && !strings.HasSuffix(x.Name, ".hit"):
		group = "nobody" // the recording found no community
	case strings.HasSuffix(x.Name, ".hit"):
		body["query"] = "all of it Alice"
	}
	if strings.HasSuffix(recipe, "NODE_DISTANCE") && !strings.HasSuffix(x.Name, ".no_center") {
		body["center_node_uuid"] = center
	}
	status, ours := ask(t, "/v1/groups/"+group+"/search_", body)
	if x.Result["error"] != nil {
		assert.Equal(t, 422, status)
		assert.Equal(t, "center_node_required", ours["error"].(map[string]any)["code"])
		return
	}
	require.Equal(t, 200, status, ours)
	for items, scores := range map[string]string{"edges": "edge_reranker_scores", "nodes": "node_reranker_scores",
		"episodes": "episode_reranker_scores", "communities": "community_reranker_scores"} {
		theirs, mine := x.Result[items].([]any), ours[items].([]any)
		theirScores, myScores := x.Result[scores].([]any), ours[scores].([]any)
		assert.Equal(t, len(theirs) > 0, len(mine) > 0, items)
		assert.Equal(t, count(theirs) == len(theirScores), len(mine) == len(myScores),
			"%s: as many scores as items, or not", items)
		if len(theirs) == 0 || len(mine) == 0 {
			continue
		}
		sameShape(t, "/"+items, theirs, mine)
		misaligned := items == "edges" && (strings.HasSuffix(recipe, "EPISODE_MENTIONS") ||
			strings.HasSuffix(recipe, "NODE_DISTANCE"))
		assert.Equal(t, map[bool]any{true: "unaligned", false: "aligned"}[misaligned],
			ours["score_alignment"].(map[string]any)[items])
		most := map[string]float64{"RRF": 2, "MMR": 1, "CROSS_ENCODER": 1, "NODE_DISTANCE": 10, "EPISODE_MENTIONS": 100}
		for suffix, top := range most {
			for _, list := range [][]any{theirScores, myScores} {
				if !strings.HasSuffix(recipe, suffix) {
					continue
				}
				for _, v := range list {
					if score, ok := v.(float64); ok {
						assert.LessOrEqual(t, score, top+1e-9, recipe)
						assert.GreaterOrEqual(t, score, 0.0, recipe)
					}
				}
			}
		}
		if !strings.HasSuffix(recipe, "MMR") && items == "edges" {
			assert.Equal(t, theirs[0].(map[string]any)["fact"], mine[0].(map[string]any)["fact"],
				"the first fact of %s", recipe)
		}
	}
}

var cutList = regexp.MustCompile(`^\.\.\. (\d+) more$`)

// count is the length of a list that the recording may have cut.
func count(list []any) int {
	if len(list) > 0 {
		if text, ok := list[len(list)-1].(string); ok {
			if m := cutList.FindStringSubmatch(text); m != nil {
				n, _ := strconv.Atoi(m[1])
				return len(list) - 1 + n
			}
		}
	}
	return len(list)
}
