package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// settings is the config block. The manifest's schema says what each key means; the host has laid the defaults under it.
type settings struct {
	config *abi.GuestConfig
	// fixed is the one workspace for all scopes; empty means a workspace for each.
	fixed string

	context             bool
	supplements         []string
	contextTokens       int64
	maxConclusions      int64
	searchTopK          int64 // 0: as many as max_conclusions
	searchMaxDistance   string
	includeMostFrequent bool
	limitToSession      bool
	summary             bool
	messages            bool
	queryChars          int

	observeAssistant       bool
	maxMessageChars        int
	workspaceConfiguration abi.Raw
	probeEmbeddings        bool
	server                 serverFacts

	// headers are of every request.
	headers abi.Members[string]
	// addressed is how the scope of the last call is addressed.
	addressed *native
	// version is what the server said of itself; a cache of this instance.
	version string
}

// serverFacts is what the operator knows of the server and Honcho does not tell. Nil means not known.
type serverFacts struct {
	flush       *bool
	sharedCache *bool
	batchTokens int64
}

//go:noinline
func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, context: true, contextTokens: 8000, maxConclusions: 25, summary: true, messages: true, queryChars: 2000,
		maxMessageChars: 25_000, server: serverFacts{batchTokens: 512}, headers: abi.Members[string]{{Name: "content-type", Value: "application/json"}}}
	for _, name := range config.Secrets {
		if name == "api_key" {
			s.headers.Set("authorization", "Bearer {{secret:api_key}}")
		}
	}
	if err := eachField(jsontext.DecodeBytes(config.Config), s.parse); err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of honcho: "+err.Error())
	}
	return s, nil
}

// parse reads one key. Null leaves the default.
func (s *settings) parse(d *jsontext.Decoder, key string) (err error) {
	if d.Next() == jsontext.Null {
		return d.Null()
	}
	switch key {
	case "fixed_workspace":
		s.fixed, err = d.Str()
	case "context":
		s.context, err = d.Bool()
	case "supplements":
		err = d.Arr(func(d *jsontext.Decoder) error {
			name, err := d.Str()
			s.supplements = append(s.supplements, name)
			return err
		})
	case "context_tokens":
		err = readNumber(d, &s.contextTokens)
	case "max_conclusions":
		err = readNumber(d, &s.maxConclusions)
	case "search_top_k":
		err = readNumber(d, &s.searchTopK)
	case "search_max_distance":
		var n jsontext.Raw
		n, err = d.Raw()
		s.searchMaxDistance = string(n)
	case "include_most_frequent":
		s.includeMostFrequent, err = d.Bool()
	case "limit_to_session":
		s.limitToSession, err = d.Bool()
	case "summary":
		s.summary, err = d.Bool()
	case "messages":
		s.messages, err = d.Bool()
	case "query_chars":
		err = readInt(d, &s.queryChars)
	case "observe_assistant":
		s.observeAssistant, err = d.Bool()
	case "max_message_chars":
		err = readInt(d, &s.maxMessageChars)
	case "workspace_configuration":
		var raw jsontext.Raw
		raw, err = d.Raw()
		s.workspaceConfiguration = append(abi.Raw(nil), raw...)
	case "probe_embeddings":
		s.probeEmbeddings, err = d.Bool()
	case "server":
		err = eachField(d, s.server.parse)
	default:
		err = d.Skip()
	}
	return err
}

func readInt(d *jsontext.Decoder, into *int) error {
	var n int64
	err := readNumber(d, &n)
	*into = int(n)
	return err
}

func (f *serverFacts) parse(d *jsontext.Decoder, key string) (err error) {
	if d.Next() == jsontext.Null {
		return d.Null()
	}
	var known bool
	switch key {
	case "flush":
		known, err = d.Bool()
		f.flush = &known
	case "shared_cache":
		known, err = d.Bool()
		f.sharedCache = &known
	case "batch_tokens":
		err = readNumber(d, &f.batchTokens)
	default:
		err = d.Skip()
	}
	return err
}

//go:noinline
func (s *settings) trace() *abi.Trace { return &abi.Trace{BackendName: s.config.Provider} }
