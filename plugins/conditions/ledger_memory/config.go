package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// settings is the config block.
type settings struct {
	config *abi.GuestConfig
	// maxTokens bounds every retrieval beside the request's own budget; nil means only that counts.
	maxTokens *int64
	// temporarySeconds is how long a temporary fact is shown.
	temporarySeconds int64
	// exposeConfidential shows what is otherwise never shown.
	exposeConfidential bool
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, maxTokens: sdk.Ptr(int64(8000)), temporarySeconds: 86400}
	err := jsontext.DecodeBytes(config.Config).Obj(func(d *jsontext.Decoder, key string) (err error) {
		if d.Next() == jsontext.Null {
			if key == "max_context_tokens" {
				s.maxTokens = nil
			}
			return d.Null()
		}
		switch key {
		case "max_context_tokens":
			*s.maxTokens, err = d.Int64()
		case "temporary_ttl_s":
			s.temporarySeconds, err = d.Int64()
		case "expose_confidential":
			s.exposeConfidential, err = d.Bool()
		default:
			err = d.Skip()
		}
		return err
	})
	if err != nil {
		return nil, wrong("config of ledger_memory", err.Error())
	}
	return s, nil
}

// budget is the request's, bounded by the configuration.
func (s *settings) budget(b abi.ContextBudget) abi.ContextBudget {
	if s.maxTokens != nil && (b.MaxTokens == nil || *b.MaxTokens > *s.maxTokens) {
		b.MaxTokens = s.maxTokens
	}
	return b
}

func (s *settings) trace(operation string) *abi.Trace {
	return &abi.Trace{BackendName: s.config.Provider, NativeOperation: operation, Consistency: "committed"}
}
