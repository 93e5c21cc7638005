package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/idtemplate"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// settings is the config block, merged over the schema's defaults by the host. The manifest's schema documents each
// key.
type settings struct {
	config *abi.GuestConfig
	// sourceDesign: a retrieval makes exactly the calls that the adapter's published design names.
	sourceDesign bool
	// fixed is the one workspace for all scopes; template makes workspaces shared by some scopes. If neither is set,
	// each scope has its own workspace.
	fixed    string
	template *idtemplate.Template

	// read is the strategy of a retrieval: readContext, readSearch or readChat.
	read                string
	supplements         []string
	contextTokens       int64   // 0: max_tokens
	maxConclusions      int64   // 0: max_items, or by max_tokens
	searchTopK          int64   // 0: as many conclusions as requested
	searchMaxDistance   abi.Raw // a number as written, nil for none
	includeMostFrequent bool
	limitToSession      bool
	summary             bool
	messages            bool
	queryChars          int64
	searchMessages      int64 // for the supplement search
	pastSessions        int64 // for the supplement summaries
	reasoningLevel      string

	observeAssistant       bool
	maxMessageChars        int64
	workspaceConfiguration abi.Raw
	probeEmbeddings        bool
	server                 serverFacts
	// userNames maps user ids to the names of their peers; assistantName is the assistant's.
	userNames     map[string]string
	assistantName string
	speakers      string

	// headers are sent with every request.
	headers map[string]string
	// version is the server's reported version; derived are the sessions, by workspace, that have a conclusion. Both
	// are caches of this instance.
	version string
	derived map[string]bool
}

// serverFacts are facts about the server that the operator knows and Honcho does not report. Nil means unknown.
type serverFacts struct {
	flush       *bool
	sharedCache *bool
	batchTokens int64
}

// The read strategies, as named in the configuration and the trace.
const (
	readContext = "context" // session context: Honcho's representation of the user
	readSearch  = "search"  // messages verbatim
	readChat    = "chat"    // Honcho's own model answers the query
)

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

// parseSettings reads the block. The initial values are the schema's defaults.
func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, read: readContext, summary: true, messages: true,
		sourceDesign: config.Profile == abi.ProfileSourceDesign, queryChars: 2000, searchMessages: 10, pastSessions: 3,
		reasoningLevel: "low", speakers: speakersPeers,
		maxMessageChars: 25_000, derived: map[string]bool{}, server: serverFacts{batchTokens: 512},
		headers: map[string]string{"content-type": "application/json"}}
	if slices.Contains(config.Secrets, "api_key") {
		s.headers["authorization"] = "Bearer {{secret:api_key}}"
	}
	var context *bool
	var names abi.Raw
	template := ""
	err := wire.Read(config.Config, "fixed_workspace", &s.fixed, "workspace_template", &template, "context", &context, "read", &s.read,
		"supplements", &s.supplements, "search_messages", &s.searchMessages, "past_sessions", &s.pastSessions,
		"reasoning_level", &s.reasoningLevel, "speakers", &s.speakers, "peer_names", wire.Fields{"users", &names,
			"assistant", &s.assistantName},
		"context_tokens", &s.contextTokens, "max_conclusions", &s.maxConclusions, "search_top_k", &s.searchTopK,
		"search_max_distance", &s.searchMaxDistance, "include_most_frequent", &s.includeMostFrequent,
		"limit_to_session", &s.limitToSession, "summary", &s.summary, "messages", &s.messages,
		"query_chars", &s.queryChars, "observe_assistant", &s.observeAssistant, "max_message_chars", &s.maxMessageChars,
		"workspace_configuration", &s.workspaceConfiguration, "probe_embeddings", &s.probeEmbeddings,
		"server", wire.Fields{"flush", &s.server.flush, "shared_cache", &s.server.sharedCache,
			"batch_tokens", &s.server.batchTokens})
	if err == nil {
		err = s.choose(context)
	}
	if err == nil && template != "" {
		err = s.share(template)
	}
	if err == nil {
		err = s.name(names)
	}
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of honcho: "+err.Error())
	}
	if s.sourceDesign {
		s.speakers = speakersOff // the design names one peer for the user
	}
	return s, nil
}

// choose sets the read strategy. context is an older key for it, and must not contradict it: the strategy must be the
// one that the manifest's declarations see as read.
func (s *settings) choose(context *bool) error {
	if context != nil {
		older, value := readSearch, "false"
		if *context {
			older, value = readContext, "true"
		}
		if s.read != older {
			return errors.New("context: " + value + " is an older word for read: " + older + ", and read is " + s.read +
				": remove context, and write the read that you mean")
		}
	}
	if s.read != readContext && slices.Contains(s.supplements, "search") {
		return errors.New("supplements: search goes with read: context only; read: " + s.read + " has its own way to " +
			"the messages")
	}
	return nil
}

// share parses a template of workspaces.
func (s *settings) share(template string) (err error) {
	if s.fixed != "" {
		return errors.New("workspace_template: fixed_workspace is set, too: remove one")
	}
	if s.template, err = idtemplate.Parse(template); err != nil {
		return errors.New("workspace_template: " + err.Error())
	}
	return nil
}

// shared reports whether scopes share workspaces and are separated by the ids of peers and sessions.
func (s *settings) shared() bool { return s.fixed != "" || s.template != nil }

// name sets the peers' names. They must keep the roles apart.
func (s *settings) name(users abi.Raw) error {
	s.userNames = map[string]string{}
	for user, name := range wire.Map(users) {
		s.userNames[user] = wire.Text(name)
	}
	for _, user := range abi.SortedKeys(s.userNames) {
		name := s.userNames[user]
		for _, role := range []string{"agent-", "tool-", "system-", speakerPeers} {
			if strings.HasPrefix(name+"-", role) || name == s.assistantName {
				return errors.New("peer_names: a user is named " + name + ", as another role's peer is")
			}
		}
	}
	for _, role := range []string{"user-", "tool-", "system-", speakerPeers} {
		if strings.HasPrefix(s.assistantName+"-", role) {
			return errors.New("peer_names.assistant: " + s.assistantName + " begins as another role's peer does")
		}
	}
	return nil
}

// trace starts the trace of an operation.
func (s *settings) trace(native string) *abi.Trace {
	return &abi.Trace{BackendName: s.config.Provider, NativeOperation: native}
}
