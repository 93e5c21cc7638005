package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/stats"
)

// Grades are a judge's results for a run's conversations: iqi_judge, memhost's reading of the second half of IQI. They
// are not corrected.
type Grades struct {
	Model     string   `json:"model"`
	Stub      bool     `json:"stub,omitempty"`
	Providers []Graded `json:"providers"`
	// Leaked counts conversations that count for no provider.
	Leaked int `json:"leaked,omitempty"`
	// Compared compares the providers with the lab's reference, session by session.
	Compared []Compared `json:"compared"`
	// Agreement is the agreement between people and judge on the same conversations, if people graded any.
	Agreement []GradeAgreement `json:"agreement,omitempty"`
}

// Graded has the grades of one provider at one budget.
type Graded struct {
	Label  string `json:"label"`
	Budget int64  `json:"budget"`
	// Mean is the mean over sessions, 0 to MaxGrade, where replicates are averaged first. Nil if no conversation has a
	// grade.
	Mean *stats.Interval `json:"mean"`
	// Missing counts conversations without a grade.
	Missing int `json:"missing,omitempty"`
}

// GradeAgreement is the agreement between two raters' grades.
type GradeAgreement struct {
	A     string `json:"a"`
	B     string `json:"b"`
	Items int    `json:"items"`
	// Kappa is Cohen's kappa, weighted by squared distance; nil if chance alone would always agree.
	Kappa *float64 `json:"kappa"`
}

// GradeLabel is one person's grade of one conversation, identified by the hash of its text.
type GradeLabel struct {
	Text  string `json:"text"`
	By    string `json:"by"`
	Grade int    `json:"grade"`
}

// minReplicates is the minimum number of replicates for a verdict on behaviour.
const minReplicates = 3

// gradedOf identifies a provider at a budget.
type gradedOf struct {
	label  string
	budget int64
}

// ConcludeGrades computes means with intervals from a judge's grades, and compares them with the lab's reference. It
// returns nil if there are no grades.
func ConcludeGrades(list []Grade, labels []GradeLabel, l *lab.Lab) *Grades {
	if len(list) == 0 {
		return nil
	}
	out := &Grades{Providers: []Graded{}, Compared: []Compared{}}
	last := map[string]int{}
	for i := range list {
		last[list[i].key()] = i
	}
	leaked := map[string]bool{} // by probe, budget and replicate
	spoilt := func(g *Grade) string { return fmt.Sprint(g.ProbeID, " ", g.Budget, " ", g.Replicate) }
	for i := range list {
		if g := &list[i]; g.Leaked && !leaked[spoilt(g)] {
			leaked[spoilt(g)] = true
			out.Leaked++
		}
	}
	values := map[gradedOf]map[string][]float64{} // by probe
	replicates, missing := map[gradedOf]map[int]bool{}, map[gradedOf]int{}
	clusters, judge := map[string]string{}, map[string]int{}
	var probes []string
	for i := range list {
		g := &list[i]
		if g.Header != nil {
			out.Model = g.Header.Judge.Model.Model
			continue
		}
		if last[g.key()] != i || leaked[spoilt(g)] {
			continue
		}
		of := gradedOf{g.Label, g.Budget}
		if values[of] == nil {
			values[of], replicates[of] = map[string][]float64{}, map[int]bool{}
		}
		if _, there := clusters[g.ProbeID]; !there {
			clusters[g.ProbeID], probes = cmp.Or(g.Cluster, g.ProbeID), append(probes, g.ProbeID)
		}
		out.Stub = out.Stub || g.Stub
		if g.Grade == nil {
			missing[of]++
			continue
		}
		replicates[of][g.Replicate] = true
		values[of][g.ProbeID] = append(values[of][g.ProbeID], float64(*g.Grade))
		judge[g.Text] = *g.Grade
	}
	share := func(of gradedOf, probe string) *float64 {
		v := values[of][probe]
		if len(v) == 0 {
			return nil
		}
		mean := 0.0
		for _, x := range v {
			mean += x
		}
		mean /= float64(len(v)) * MaxGrade
		return &mean
	}
	for i := range l.Providers {
		for _, budget := range l.BudgetsOf(&l.Providers[i]) {
			of := gradedOf{l.Providers[i].Label, budget}
			if values[of] == nil {
				continue
			}
			g := Graded{Label: of.label, Budget: budget, Missing: missing[of]}
			var samples []stats.Sample
			for _, probe := range probes {
				if v := share(of, probe); v != nil {
					samples = append(samples, stats.Sample{Cluster: clusters[probe], Value: *v * MaxGrade})
				}
			}
			if len(samples) > 0 {
				mean := stats.MeanInterval(samples, stats.Random(l.Seed, fmt.Sprint("grades ", of.label, budget)))
				g.Mean = &mean
			}
			out.Providers = append(out.Providers, g)
		}
	}
	for _, budget := range l.Budgets {
		c := compareGrades(l, budget, func(label string) bool { return values[gradedOf{label, budget}] != nil },
			func(label string) (pairs []*float64) {
				for _, probe := range probes {
					pairs = append(pairs, share(gradedOf{label, budget}, probe))
				}
				return pairs
			}, probes, clusters)
		for i := range c.Comparisons {
			if min(len(replicates[gradedOf{c.Comparisons[i].Label, budget}]), len(replicates[gradedOf{c.Reference, budget}])) < minReplicates {
				c.Comparisons[i].Verdict = stats.TooFewReplicates
			}
		}
		if len(c.Comparisons) > 0 {
			out.Compared = append(out.Compared, c)
		}
	}
	out.Agreement = gradeAgreements(labels, judge)
	return out
}

// compareGrades compares every provider with the lab's reference at a budget.
func compareGrades(l *lab.Lab, budget int64, has func(label string) bool, of func(label string) []*float64, probes []string,
	clusters map[string]string) Compared {
	reference := l.Providers[0].Label
	if l.Primary != nil {
		reference = l.Primary.Reference
	}
	c := Compared{Budget: budget}
	var labels []string
	for i := range l.Providers {
		switch p := &l.Providers[i]; {
		case !has(p.Label):
		case strings.EqualFold(p.Label, reference):
			c.Reference = p.Label
		case !p.Reference:
			labels = append(labels, p.Label)
		}
	}
	if c.Reference == "" || len(labels) == 0 {
		return c
	}
	family, second := make([][]stats.Pair, len(labels)), of(c.Reference)
	for i, label := range labels {
		for n, value := range of(label) {
			family[i] = append(family[i], stats.Pair{Cluster: clusters[probes[n]], A: value, B: second[n]})
		}
	}
	for i, compared := range stats.Compare(family, stats.Random(l.Seed, fmt.Sprintf("grades/%d", budget))) {
		compared.Scale(MaxGrade)
		c.Comparisons = append(c.Comparisons, LabelledComparison{labels[i], compared})
	}
	return c
}

// gradeAgreements compares the judge with each person, and people with each other.
func gradeAgreements(labels []GradeLabel, judge map[string]int) []GradeAgreement {
	raters := []string{"judge"}
	says := map[string]map[string]int{"judge": judge}
	for _, l := range labels {
		if says[l.By] == nil {
			raters, says[l.By] = append(raters, l.By), map[string]int{}
		}
		says[l.By][l.Text] = l.Grade
	}
	var list []GradeAgreement
	for i, a := range raters {
		for _, b := range raters[i+1:] {
			var first, second []int
			var texts []string
			for text := range says[b] {
				if _, both := says[a][text]; both {
					texts = append(texts, text)
				}
			}
			slices.Sort(texts)
			for _, text := range texts {
				first, second = append(first, says[a][text]), append(second, says[b][text])
			}
			if len(texts) == 0 {
				continue
			}
			pair := GradeAgreement{A: a, B: b, Items: len(texts)}
			if kappa, known := stats.WeightedKappa(first, second); known {
				pair.Kappa = &kappa
			}
			list = append(list, pair)
		}
	}
	return list
}
