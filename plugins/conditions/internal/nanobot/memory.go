package nanobot

import (
	"iter"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// Settings are the options common to all memories.
type Settings struct {
	Config *abi.GuestConfig
	Model  model.Endpoint
	// Local is the profile for everyday use.
	Local bool
	// Policy decides when sessions are archived.
	Policy string
	// Window is the number of messages at which the policy window archives; the last half of them are not archived.
	Window int64
	// Tokens is the budget of the policy tokens.
	Tokens TokenBudget
	// Tail: a retrieval shows the messages of its session that are not archived yet, at most the last MaxHistory.
	Tail       bool
	MaxHistory int64
	// MaxTokens bounds every retrieval in addition to the request's budget.
	MaxTokens int64
	// Search: a retrieval shows history entries that share words with the query.
	Search bool
}

// ParseSettings reads the common options, and a memory's own ones. other reads members that are objects. The profile
// local has the policy everyday.
func ParseSettings(config *abi.GuestConfig, everyday string, other func(d *wirejson.Decoder, name string) error,
	own ...object.Member) (Settings, error) {
	s := Settings{Config: config, Window: 100, Tokens: DefaultBudget(), MaxHistory: 500, MaxTokens: 8000}
	var profile, search string
	var tail abi.Raw
	members := append(own, s.Tokens.members()...)
	members = append(members, object.Optional("profile", &profile), object.Optional("update_policy", &s.Policy),
		object.Optional("memory_window", &s.Window), object.Optional("max_history_messages",
			&s.MaxHistory), object.Optional("include_tail", &tail),
		object.Optional("max_context_tokens", &s.MaxTokens), object.Optional("history_search", &search))
	err := object.Read(wirejson.DecodeBytes(config.Config), func(d *wirejson.Decoder, name string) (err error) {
		switch {
		case name == "llm":
			s.Model, err = model.ParseEndpoint(d, config.Secrets)
		case other != nil:
			err = other(d, name)
		default:
			err = d.Skip()
		}
		return err
	}, members...)
	s.Local, s.Search = profile == "local", search == "keyword"
	s.Tail = string(tail) == "true" || tail == nil && s.Local
	if s.Policy == "" {
		s.Policy = model.PolicySession
		if s.Local {
			s.Policy = everyday
		}
	}
	if err != nil {
		return s, abi.NewError(abi.CodeInvalidArgument, "config of "+config.Provider+": "+err.Error())
	}
	return s, nil
}

// BySession reports whether recorded messages wait until their session ends.
func (s *Settings) BySession() bool { return s.Policy == model.PolicySession }

// Trace returns the trace of an answer.
func (s *Settings) Trace(operation string) *abi.Trace {
	return &abi.Trace{BackendName: s.Config.Provider, NativeOperation: operation}
}

// Base is the common part of all memories in one operation. A memory embeds it.
type Base struct {
	*state.State
	*Settings
}

// NewBase returns the base of an operation.
func NewBase(c *sdk.Call, s *Settings) Base { return Base{state.Of(c), s} }

// Common returns the base itself.
func (b *Base) Common() *Base { return b }

// Setup does nothing. The methods below are the defaults for memories without such work.
func (b *Base) Setup() {}

// BeforeWork is called before sessions are archived.
func (b *Base) BeforeWork() {}

// AfterWork is called after sessions were archived.
func (b *Base) AfterWork(int64) {}

// Waits adds nothing: only sessions wait.
func (b *Base) Waits(*abi.BackendReadiness) {}

// AgentEdits is "": an agent cannot change the memory.
func (b *Base) AgentEdits() string { return "" }

// TailFrom returns the first message of its session that a retrieval shows: the first that is not archived.
func (b *Base) TailFrom(s *Session) int64 { return s.Pointer }

// Memory is one of the memories, in one operation. Base provides the methods that most of them do not need.
type Memory interface {
	Common() *Base
	// AgentEdits is the mutation by which an agent may change the long-term memory; "" for none.
	AgentEdits() string
	// Setup prepares a scope.
	Setup()
	// Counts counts what the memory holds besides messages.
	Counts() []abi.InventoryKind
	// PromptTokens is the number of tokens of the memory that an agent is shown when it continues the session.
	PromptTokens(s *Session) int64
	// Archive archives the messages of a session before end. again is false if another round would not help.
	Archive(s *Session, end int64, u *model.Usage) (again bool, failed error)
	// BeforeWork is called before sessions are archived, AfterWork after that; reserve is the time that must remain, in
	// ms.
	BeforeWork()
	AfterWork(reserve int64)
	// Waits adds to a readiness the work that waits in addition to sessions.
	Waits(answer *abi.BackendReadiness)
	// Forget removes what was derived from forgotten messages, and lists what remains of it.
	Forget(f *Forgetting)
	// Items returns the items that a retrieval shows, without the tail, and warnings.
	Items(r *abi.RetrieveRequest) (items []Item, notes []string)
	// All returns everything that was derived from messages, files first.
	All() iter.Seq[Item]
	// TailFrom returns the first message of a session that a retrieval shows verbatim.
	TailFrom(s *Session) int64
	// WriteFiles adds the memory's own files, and those of Base at their place.
	WriteFiles(f *Files)
	// Empty reports whether the memory has no data besides that of Base. TakeFiles imports the memory's own files.
	Empty() bool
	TakeFiles(in *Incoming)
	// Query and Mutate answer the native operations other than files, status and import_files; false for an unknown
	// name.
	Query(r *abi.NativeQuery, answer *wirejson.Encoder) bool
	Mutate(r *abi.NativeMutation, receipt *abi.MutationReceipt) bool
}
