package report

import "github.com/memhost/memhost/abi"

// ShadowList lists the slot's shadows.
type ShadowList struct {
	// Serving is the provider whose answers agents get.
	Serving string   `json:"serving"`
	Shadows []Shadow `json:"shadows"`
}

// Shadow is a provider that gets every write and is asked a share of the retrievals. No agent sees its answers.
type Shadow struct {
	Provider      string            `json:"provider"`
	ConditionKind abi.ConditionKind `json:"condition_kind"`
	State         FollowerState     `json:"state"`
	Since         string            `json:"since"`
	// SamplePercent is the share of retrievals that it is asked, RetentionMS how long its answers are kept, in ms.
	SamplePercent int64            `json:"sample_percent"`
	RetentionMS   int64            `json:"retention_ms"`
	Progress      FollowerProgress `json:"progress"`
	// Missed counts retrievals that were to be asked and were not, because the shadow was too slow, since the slot
	// started.
	Missed int64        `json:"missed"`
	Report ShadowReport `json:"report"`
}

// ShadowReport compares the stored answers of a shadow with those of the serving provider. Each figure is over the
// answers that have it; null if none has.
type ShadowReport struct {
	// Answers are stored; Failed of them are errors, Empty of them have no context.
	Answers int64 `json:"answers"`
	Failed  int64 `json:"failed"`
	Empty   int64 `json:"empty"`
	// Errors counts the errors by code.
	Errors map[string]int64 `json:"errors,omitempty"`
	// TokensMean and the others are means over the answers without an error.
	TokensMean        *float64 `json:"tokens_mean,omitempty"`
	ServingTokensMean *float64 `json:"serving_tokens_mean,omitempty"`
	LatencyP50MS      *float64 `json:"latency_p50_ms,omitempty"`
	LatencyP95MS      *float64 `json:"latency_p95_ms,omitempty"`
	ServingP50MS      *float64 `json:"serving_p50_ms,omitempty"`
	ServingP95MS      *float64 `json:"serving_p95_ms,omitempty"`
	// OverlapMean is the mean of ShadowAnswer.Overlap, over so many answers that have one.
	OverlapMean    *float64 `json:"overlap_mean,omitempty"`
	OverlapAnswers int64    `json:"overlap_answers"`
}

// ShadowAnswersRequest asks for stored answers of shadows, newest first.
type ShadowAnswersRequest struct {
	// Provider is one of the shadows; absent means all.
	Provider string `json:"provider,omitempty"`
	// Scope limits them to one person's; absent means all.
	Scope *abi.MemoryScope `json:"scope,omitempty"`
	// Before is next of the page before; absent for the first page.
	Before string `json:"before,omitempty"`
	// Limit is how many answers the page has at most; 0 means 50. At most 500.
	Limit int64 `json:"limit,omitempty"`
}

// Validate checks that limit is from 0 to 500, and the scope if there is one.
func (x *ShadowAnswersRequest) Validate() error {
	if x.Limit < 0 || x.Limit > 500 {
		return invalid("limit", "want 0 to 500")
	}
	if x.Scope == nil {
		return nil
	}
	return checkScope(x.Scope)
}

// ShadowAnswers is a page of stored answers.
type ShadowAnswers struct {
	Answers []ShadowAnswer `json:"answers"`
	// Next goes into before of the following page. Absent on the last page.
	Next string `json:"next,omitempty"`
}

// ShadowAnswer is what a shadow would have answered to a retrieval, beside what the agent got.
type ShadowAnswer struct {
	// At is when the agent had its answer, RFC 3339.
	At       string `json:"at"`
	Provider string `json:"provider"`
	Serving  string `json:"serving"`
	// Query, Scope and SessionID are the request's.
	Query     string          `json:"query"`
	Scope     abi.MemoryScope `json:"scope"`
	SessionID string          `json:"session_id"`
	// ServingContext is what the agent got, with its tokens and how long it took, in ms.
	ServingContext   string  `json:"serving_context"`
	ServingTokens    int64   `json:"serving_tokens"`
	ServingLatencyMS float64 `json:"serving_latency_ms"`
	// FormattedContext is what the shadow answered. Absent, like its figures, if Error is set.
	FormattedContext string     `json:"formatted_context,omitempty"`
	Tokens           int64      `json:"tokens"`
	LatencyMS        float64    `json:"latency_ms"`
	Error            *abi.Error `json:"error,omitempty"`
	// Behind counts the events that the shadow had not got when it was asked.
	Behind int64 `json:"behind"`
	// Both, OnlyServing and OnlyShadow count the source events of the evidence. Overlap is both divided by all three;
	// absent if one of the two names no source events.
	Both        int64    `json:"both"`
	OnlyServing int64    `json:"only_serving"`
	OnlyShadow  int64    `json:"only_shadow"`
	Overlap     *float64 `json:"overlap,omitempty"`
}
