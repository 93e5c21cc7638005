package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// settings is the config block.
type settings struct {
	provider string
	// variant names how the experiment presents the persona elsewhere. It has no effect here.
	variant string
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{provider: config.Provider, variant: "anonymized"}
	err := wirejson.DecodeBytes(config.Config).Obj(func(d *wirejson.Decoder, key string) (err error) {
		if key != "variant" {
			return d.Skip()
		}
		s.variant, err = d.Str()
		return err
	})
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of no_memory: "+err.Error())
	}
	return s, nil
}

// trace returns the common part of every answer's trace.
func (s *settings) trace() *abi.Trace {
	return &abi.Trace{BackendName: s.provider, Details: map[string]abi.Raw{"variant": sdk.Text(s.variant)}}
}
