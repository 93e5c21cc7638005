package main

import (
	"slices"

	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// settings are what the operator's block says. config_schema in manifest.json says what may stand there; the host has
// checked it. The URL is not among them: the host builds it.
type settings struct {
	effort    string // "": Hindsight's default
	types     []string
	maxTokens int64 // of a recall whose request has no budget; 0: Hindsight's default
	hasKey    bool
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{hasKey: slices.Contains(config.Secrets, "api_key")}
	return s, wirejson.DecodeBytes(config.Config).Obj(func(d *wirejson.Decoder, key string) (err error) {
		switch key {
		case "effort":
			s.effort, err = d.Str()
		case "types":
			s.types, err = sdk.ReadTexts(d)
		case "max_tokens":
			s.maxTokens, err = d.Int64()
		default:
			err = d.Skip()
		}
		return err
	})
}
