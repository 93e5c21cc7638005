package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// settings is the config block.
type settings struct {
	config *abi.GuestConfig
	// excludeCurrent leaves out the turns of the requesting session, which the agent shows itself.
	excludeCurrent bool
	// maxTokens bounds every retrieval in addition to the request's budget; nil: only the request's budget counts.
	maxTokens *int64
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config}
	err := wirejson.DecodeBytes(config.Config).Obj(func(d *wirejson.Decoder, key string) error {
		if d.Next() == wirejson.Null {
			return d.Null()
		}
		switch key {
		case "current_session":
			value, err := d.Str()
			s.excludeCurrent = value == "exclude"
			return err
		case "max_tokens":
			value, err := d.Int64()
			s.maxTokens = &value
			return err
		}
		return d.Skip()
	})
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of full_history: "+err.Error())
	}
	return s, nil
}

// budget returns the request's budget, bounded by the configuration.
func (s *settings) budget(b abi.ContextBudget) abi.ContextBudget {
	if s.maxTokens != nil && (b.MaxTokens == nil || *b.MaxTokens > *s.maxTokens) {
		b.MaxTokens = s.maxTokens
	}
	return b
}

// effective returns the configuration that a retrieval used, for its trace.
func (s *settings) effective(budget abi.ContextBudget) map[string]abi.Raw {
	used := map[string]abi.Raw{"order": sdk.Text("chronological"), "current_session": sdk.Text("include")}
	if s.excludeCurrent {
		used["current_session"] = sdk.Text("exclude")
	}
	if budget.MaxTokens != nil {
		used["max_tokens"] = sdk.Number(*budget.MaxTokens)
	}
	return used
}
