package model

import (
	"context"
	"fmt"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
)

// Agent answers probes with the context from a provider. It uses the same template for all, with the context always in
// the same place.
type Agent struct {
	client   *Client
	template string
	seed     uint64
}

// NewAgent creates the agent of a lab.
func NewAgent(l *lab.Lab, getenv func(string) string) (*Agent, error) {
	client, err := NewClient(l.Agent.Model, getenv)
	if err != nil {
		return nil, prefixed("agent.", err)
	}
	if err := CheckTemplate("agent.template", l.Agent.Template); err != nil {
		return nil, err
	}
	return &Agent{client: client, template: l.Agent.Template, seed: l.Seed}, nil
}

func prefixed(path string, err error) error {
	e := *abi.AsError(err)
	e.Message = path + e.Message
	return &e
}

// Answer implements run.Agent.
func (a *Agent) Answer(ctx context.Context, probe *pack.Probe, contextText string,
	put func([]byte) (string, error)) (*journal.Answer, error) {
	reply, err := a.client.Chat(ctx, []Message{{"user", a.prompt(probe, contextText)}}, a.seed, put)
	if err != nil {
		return nil, err
	}
	return &journal.Answer{Turn: 1, Text: reply.Text, Model: reply.Model, Stub: reply.Stub, Params: reply.Params,
		FinishReason: reply.FinishReason, Usage: reply.Usage, Error: reply.missing(), RequestSHA256: reply.RequestSHA256,
		AnswerSHA256: reply.AnswerSHA256, LatencyMS: float64(reply.Latency.Microseconds()) / 1000}, nil
}

// prompt is the prompt for a probe.
func (a *Agent) prompt(probe *pack.Probe, contextText string) string {
	options := ""
	if len(probe.Options) > 0 {
		options = "\nChoose one of these:\n" + strings.Join(probe.Options, "\n")
	}
	return Fill(a.template, contextText, probe.Query, options, probe.AsOf)
}

// Fill fills in a template in one pass, so that a placeholder in a memory's text remains text. now is RFC 3339, or
// empty.
func Fill(template, contextText, query, options, now string) string {
	time := "not known"
	if at, err := abi.ParseTime(now); err == nil {
		time = at.Format("Monday, 2 January 2006, 15:04 MST")
	}
	return strings.NewReplacer("{{context}}", contextText, "{{query}}", query, "{{options}}", options,
		"{{now}}", time).Replace(template)
}

// CheckTemplate requires that the template at a key has context and question: without the context, all memories would
// be the same.
//
// Errors: invalid_argument.
func CheckTemplate(key, template string) error {
	for _, placeholder := range []string{"{{context}}", "{{query}}"} {
		if !strings.Contains(template, placeholder) {
			return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%s: has no %s", key, placeholder))
		}
	}
	return nil
}
