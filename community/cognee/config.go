package main

import (
	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// settings are what the operator's block says. The host has checked them by config_schema in manifest.json, and builds
// the URL itself.
type settings struct {
	topK int64 // of a search whose request has no budget of items
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{topK: 15}
	return s, wirejson.DecodeBytes(config.Config).Obj(func(d *wirejson.Decoder, key string) (err error) {
		if key != "top_k" {
			return d.Skip()
		}
		s.topK, err = d.Int64()
		return err
	})
}
