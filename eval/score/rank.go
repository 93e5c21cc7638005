package score

import (
	"math"
	"slices"
)

// cutoffs are the values of k in metrics such as recall@k.
var cutoffs = []int{1, 5, 10, 20}

// maxSources is how many source events an item may name to be attributed: an item that names half a conversation is not
// evidence for any part of it.
const maxSources = 3

// firstRanks returns, for each group, the rank (from 1) of the first entry of the ranking that contains a member; 0 if
// none does.
//
//	groups {{a, b}, {c}}, ranking {{x}, {b}, {}, {a, c}}  ->  2, 4
func firstRanks[T comparable](groups, ranking [][]T) []int {
	ranks := make([]int, len(groups))
	for r, entry := range ranking {
		for g, group := range groups {
			if ranks[g] == 0 && slices.ContainsFunc(entry, func(id T) bool { return slices.Contains(group, id) }) {
				ranks[g] = r + 1
			}
		}
	}
	return ranks
}

// rankScores has the scores of one ranking.
type rankScores struct {
	hit, recall, all, ndcg []float64 // by cutoff
	mrr                    float64
}

// scoreRanks scores the first ranks of the groups of one probe. There is at least one group.
//
// hit@k is 1 if a group is served within the first k; recall@k is the share of groups that are; all@k is 1 if all are;
// MRR is 1 over the first rank that serves any. nDCG@k adds 1/log2(1 + rank) for each group served within k, divided by
// what one group at each rank from 1 would add. It is at most 1, because an entry that serves two groups at once could
// exceed that.
func scoreRanks(ranks []int) rankScores {
	var s rankScores
	for _, k := range cutoffs {
		served, gain, ideal := 0, 0.0, 0.0
		for i, r := range ranks {
			if r > 0 && r <= k {
				served++
				gain += discount(r)
			}
			if i < k {
				ideal += discount(i + 1)
			}
		}
		s.hit = append(s.hit, yes(served > 0))
		s.recall = append(s.recall, float64(served)/float64(len(ranks)))
		s.all = append(s.all, yes(served == len(ranks)))
		s.ndcg = append(s.ndcg, min(1, gain/ideal))
	}
	for _, r := range ranks {
		if r > 0 {
			s.mrr = max(s.mrr, 1/float64(r))
		}
	}
	return s
}

func discount(rank int) float64 { return 1 / math.Log2(float64(rank)+1) }

func yes(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// untouched is the probability that k entries drawn from n include none of m: C(n-m, k) / C(n, k).
func untouched(n, m, k int) float64 {
	p := 1.0
	for i := range min(k, n) {
		if n-m-i <= 0 {
			return 0
		}
		p *= float64(n-m-i) / float64(n-i)
	}
	return p
}

// maxSubsets is the maximum number of groups for which all subsets are enumerated.
const maxSubsets = 12

// chanceScores is the expected score of a ranking of all n entries in random order. Groups contain entry numbers.
func chanceScores[T comparable](groups [][]T, n int) rankScores {
	var s rankScores
	relevant := len(union(groups))
	for _, k := range cutoffs {
		k = min(k, n)
		recall, gain, ideal := 0.0, 0.0, 0.0
		for i, g := range groups {
			recall += (1 - untouched(n, len(g), k)) / float64(len(groups))
			for r := 1; r <= k; r++ { // the probability that the group's first entry is at rank r
				gain += discount(r) * (untouched(n, len(g), r-1) - untouched(n, len(g), r))
			}
			if i < k {
				ideal += discount(i + 1)
			}
		}
		s.hit = append(s.hit, 1-untouched(n, relevant, k))
		s.recall = append(s.recall, recall)
		s.all = append(s.all, chanceOfAll(groups, n, k))
		s.ndcg = append(s.ndcg, min(1, gain/ideal))
	}
	for r := 1; r <= n; r++ {
		s.mrr += (untouched(n, relevant, r-1) - untouched(n, relevant, r)) / float64(r)
	}
	return s
}

// chanceOfAll is the probability that k of n entries serve every group, by inclusion-exclusion over the groups that are
// missed. With more than 12 groups it is the smallest probability for a single group, which is an upper bound.
func chanceOfAll[T comparable](groups [][]T, n, k int) float64 {
	if len(groups) > maxSubsets {
		least := 1.0
		for _, g := range groups {
			least = min(least, 1-untouched(n, len(g), k))
		}
		return least
	}
	p := 0.0
	for subset := range 1 << len(groups) {
		var missed [][]T
		sign := 1.0
		for g := range groups {
			if subset>>g&1 == 1 {
				missed = append(missed, groups[g])
				sign = -sign
			}
		}
		p += sign * untouched(n, len(union(missed)), k)
	}
	return max(0, p)
}

func union[T comparable](groups [][]T) map[T]bool {
	set := map[T]bool{}
	for _, g := range groups {
		for _, id := range g {
			set[id] = true
		}
	}
	return set
}
