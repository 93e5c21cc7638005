package stats

import (
	"math/rand/v2"
	"slices"
)

// Outcomes are a judge's verdicts on items whose truth is known, or on answers, with their clusters.
type Outcomes []Sample // Value is 1 for accepted, 0 for rejected

// Corrected is a judged rate, corrected for the judge's own errors.
type Corrected struct {
	Judged       float64 `json:"judged"`
	FalseAccepts float64 `json:"false_accepts"` // of wrong items
	FalseRejects float64 `json:"false_rejects"` // of right items
	// Identifiable is false if false accepts and false rejects add up to 0.8 or more: the judge's verdicts then mean
	// almost nothing, and the fields below are not valid.
	Identifiable bool `json:"identifiable"`
	// Rate is (judged - FA) / (1 - FA - FR), unclipped; Clipped is limited to [0, 1].
	Rate    float64 `json:"rate"`
	Clipped float64 `json:"clipped"`
	// Low and High bound Rate at 95 %: answers and calibration items are resampled together, by cluster.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// mostError is the total error rate from which a judge's verdicts are meaningless.
const mostError = 0.8

// Correct corrects judged answers by the same judge's verdicts on right and on wrong items.
func Correct(answers, right, wrong Outcomes, random *rand.Rand) Corrected {
	c := Corrected{Judged: mean(clustered(answers)), FalseAccepts: mean(clustered(wrong)),
		FalseRejects: 1 - mean(clustered(right))}
	if len(right) == 0 || len(wrong) == 0 || c.FalseAccepts+c.FalseRejects >= mostError {
		return c
	}
	c.Identifiable = true
	c.Rate = corrected(c.Judged, c.FalseAccepts, c.FalseRejects)
	c.Clipped = min(1, max(0, c.Rate))
	sets := [][]cluster{clustered(answers), clustered(right), clustered(wrong)}
	var rates []float64
	for range Resamples {
		var drawn [3]float64
		for i, set := range sets {
			drawn[i] = mean(resampled(set, random))
		}
		if fa, fr := drawn[2], 1-drawn[1]; fa+fr < mostError {
			rates = append(rates, corrected(drawn[0], fa, fr))
		}
	}
	c.Low, c.High = c.Rate, c.Rate
	if len(rates) > 0 {
		c.Low, c.High = percentiles(rates)
	}
	return c
}

func corrected(judged, falseAccepts, falseRejects float64) float64 {
	return (judged - falseAccepts) / (1 - falseAccepts - falseRejects)
}

func resampled(clusters []cluster, random *rand.Rand) []cluster {
	drawn := slices.Clone(clusters)
	for i := range drawn {
		drawn[i] = clusters[random.IntN(len(clusters))]
	}
	return drawn
}
