package score

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRankingMetricsAreThoseOfIRMeasures(t *testing.T) {
	text, err := os.ReadFile("testdata/fixtures.json")
	require.NoError(t, err)
	var fixtures struct {
		Cases []struct {
			Groups, Ranking   [][]string
			MRR               float64
			Hit, Recall, NDCG []float64
		}
	}
	require.NoError(t, json.Unmarshal(text, &fixtures))
	require.Len(t, fixtures.Cases, 60)
	for i, c := range fixtures.Cases {
		s := scoreRanks(firstRanks(c.Groups, c.Ranking))
		assert.InDelta(t, c.MRR, s.mrr, 1e-9, "case %d", i)
		assert.InDeltaSlice(t, c.Hit, s.hit, 1e-9, "case %d", i)
		assert.InDeltaSlice(t, c.Recall, s.recall, 1e-9, "case %d", i)
		assert.InDeltaSlice(t, c.NDCG, s.ndcg, 1e-9, "case %d", i)
		for k := range cutoffs {
			assert.Equal(t, c.Recall[k] == 1, s.all[k] == 1, "case %d", i)
		}
	}
}

func TestRanksOfGroups(t *testing.T) {
	for _, c := range []struct {
		name            string
		groups, ranking [][]string
		ranks           []int
		ndcg5           float64
	}{
		{"nothing is returned", [][]string{{"a"}}, nil, []int{0}, 0},
		{"any member serves", [][]string{{"a", "b"}}, [][]string{{"b"}, {"a"}}, []int{1}, 1},
		{"every group is needed", [][]string{{"a"}, {"b"}}, [][]string{{"a"}, {"x"}, {"x"}}, []int{1, 0},
			1 / (1 + discount(2))},
		{"one item serves two groups", [][]string{{"a"}, {"b"}}, [][]string{{"a", "b"}}, []int{1, 1}, 1},
		{"an item without a source keeps its place", [][]string{{"a"}}, [][]string{nil, {"a"}}, []int{2}, discount(2)},
		{"behind the cutoff", [][]string{{"a"}}, [][]string{{"x"}, {"x"}, {"x"}, {"x"}, {"x"}, {"a"}}, []int{6}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			ranks := firstRanks(c.groups, c.ranking)
			assert.Equal(t, c.ranks, ranks)
			assert.InDelta(t, c.ndcg5, scoreRanks(ranks).ndcg[1], 1e-12)
		})
	}
}

func TestItemsOfManySourcesAreNotAttributed(t *testing.T) {
	assert.Nil(t, attributed(nil))
	assert.Equal(t, []string{"a", "b", "c"}, attributed([]string{"a", "b", "a", "c"}))
	assert.Nil(t, attributed([]string{"a", "b", "c", "d"}))
}

// Chance is compared with the mean over random orders.
func TestChanceIsWhatRandomOrderScores(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		n      int
		groups [][]int
	}{{30, [][]int{{1}}}, {8, [][]int{{1, 2}, {3}}}, {12, [][]int{{1, 2}, {2, 3}, {9}}}, {3, [][]int{{2}, {3}}}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			const draws = 20_000
			var sum rankScores
			sum.hit, sum.recall, sum.all, sum.ndcg = make([]float64, 4), make([]float64, 4), make([]float64,
				4), make([]float64, 4)
			for range draws {
				var ranking [][]int
				for _, entry := range random.Perm(c.n) {
					ranking = append(ranking, []int{entry + 1})
				}
				s := scoreRanks(firstRanks(c.groups, ranking))
				sum.mrr += s.mrr / draws
				for k := range cutoffs {
					sum.hit[k] += s.hit[k] / draws
					sum.recall[k] += s.recall[k] / draws
					sum.all[k] += s.all[k] / draws
					sum.ndcg[k] += s.ndcg[k] / draws
				}
			}
			want := chanceScores(c.groups, c.n)
			assert.InDelta(t, want.mrr, sum.mrr, 0.015)
			assert.InDeltaSlice(t, want.hit, sum.hit, 0.015)
			assert.InDeltaSlice(t, want.recall, sum.recall, 0.015)
			assert.InDeltaSlice(t, want.all, sum.all, 0.015)
			if len(c.groups) == 1 {
				assert.InDeltaSlice(t, want.ndcg, sum.ndcg, 0.015)
			}
		})
	}
}
