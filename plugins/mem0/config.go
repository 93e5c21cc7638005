package main

import (
	"slices"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// settings is the config block; manifest.json says what each field means.
type settings struct {
	config *abi.GuestConfig
	// surface is what the server was found to be, once an operation of this instance has looked.
	surface *surface
	// last are the ids of the scope that this instance served last.
	last keptIDs

	api, auth       string
	infer           bool
	topK            int64
	threshold       float64
	rerank          bool
	rerankPool      int64
	rerankOnError   string
	procedural      bool
	explain         bool
	latestOnly      bool
	sendAgentID     bool
	backdate        bool
	observationDate string
	instructions    string
	namePrefix      bool
	nestedMetadata  bool
	maxChars        int64
	verifyWrites    bool
	addTimeoutS     int64
	settleMS        int64
	exactSearch     string
	deepHealth      bool
	feedback        string
	authorized      bool // the operator gave a key
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

// parseSettings reads the effective block: the host has validated it and laid the schema's defaults under it.
func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, authorized: slices.Contains(config.Secrets, "api_key")}
	texts := map[string]*string{"api": &s.api, "auth": &s.auth, "observation_date": &s.observationDate, "custom_instructions": &s.instructions,
		"exact_search": &s.exactSearch, "feedback": &s.feedback, "rerank_on_error": &s.rerankOnError}
	flags := map[string]*bool{"infer": &s.infer, "procedural": &s.procedural, "rerank": &s.rerank, "explain": &s.explain, "latest_only": &s.latestOnly, "send_agent_id": &s.sendAgentID,
		"backdate": &s.backdate, "name_prefix": &s.namePrefix, "nested_metadata": &s.nestedMetadata, "verify_writes": &s.verifyWrites,
		"deep_health": &s.deepHealth}
	numbers := map[string]*int64{"top_k": &s.topK, "rerank_pool": &s.rerankPool, "max_chars_per_message": &s.maxChars, "add_timeout_s": &s.addTimeoutS, "settle_ms": &s.settleMS}
	err := jsontext.DecodeBytes(config.Config).Obj(func(d *jsontext.Decoder, key string) (err error) {
		switch {
		case texts[key] != nil:
			*texts[key], err = d.Str()
		case flags[key] != nil:
			*flags[key], err = d.Bool()
		case numbers[key] != nil:
			*numbers[key], err = d.Int64()
		case key == "threshold":
			s.threshold, err = d.Float64()
		default:
			err = d.Skip()
		}
		return err
	})
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of "+config.Provider+": "+err.Error())
	}
	if s.procedural && !s.infer {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of "+config.Provider+": procedural: a procedural memory is written by an LLM; it needs infer: true")
	}
	return s, nil
}
