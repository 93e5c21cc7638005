package picoclaw

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/memhost/memhost/abi"
)

// turnKey identifies a turn. Turn ids count from 1 in each process of PicoClaw, and a hook lives as long as that
// process.
type turnKey struct{ session, turn string }

// turn is what the hook decided when the model was first called in a turn. Every later call of the turn gets the same
// text: PicoClaw does not keep the injected text, and a prompt that changes in the middle of a turn is neither fair nor
// cached.
type turn struct {
	query   string
	once    sync.Once
	context string
	// users are the user messages of the latest request, and first is the number in the first request.
	users []string
	first int
}

// turns are those in progress. A turn whose end is never reported (dropped, or not observed) is removed after maxTurns
// newer ones.
type turns struct {
	mu    sync.Mutex
	byKey map[turnKey]*turn
	order []turnKey
}

const maxTurns = 1024

// at returns the turn of a call. A first call with another question restarts it.
func (t *turns) at(key turnKey, iteration int, query string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.byKey[key]; known != nil && (iteration > 1 || known.query == query) {
		return known
	} else if known == nil {
		t.order = append(t.order, key)
		if len(t.order) > maxTurns {
			delete(t.byKey, t.order[0])
			t.order = t.order[1:]
		}
	}
	begun := &turn{query: query}
	t.byKey[key] = begun
	return begun
}

// end removes a turn and returns what was known about it, nil for a turn without a request. Its place in order is freed
// when it reaches the front.
func (t *turns) end(key turnKey) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.byKey[key]
	delete(t.byKey, key)
	return known
}

// saw stores the user messages of a request.
func (t *turns) saw(key turnKey, users []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.byKey[key]
	if known == nil {
		return
	}
	if known.users == nil {
		known.first = len(users)
	}
	known.users = users
}

// steered returns the messages that were sent while a turn was running, without duplicates: PicoClaw puts them into the
// turn, often twice, and the end of the turn contains only the first one, message. Results of sub-agents are left out.
//
// With the requests [A], [A B B R], where R is such a result, and message A it returns [B].
func (t *turn) steered(message string) (texts []string) {
	if t == nil {
		return nil
	}
	from := min(t.first, len(t.users))
	for i := from - 1; i >= 0; i-- {
		if t.users[i] == message {
			from = i + 1
			break
		}
	}
	for _, text := range t.users[from:] {
		if strings.TrimSpace(text) != "" && !strings.HasPrefix(text, systemPrefix) && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// beforeParams holds what the hook reads of a request. The rest is not inspected, and returned byte for byte.
type beforeParams struct {
	Meta struct {
		AgentID    string
		TurnID     string
		SessionKey string
		Iteration  int
	} `json:"meta"`
	Context struct {
		Inbound struct {
			Channel  string `json:"channel"`
			SenderID string `json:"sender_id"`
		} `json:"inbound"`
	} `json:"context"`
}

// Keys of PicoClaw's own sessions, in which no person speaks.
const (
	subTurnPrefix = "subturn-" // a sub-agent; its ParentTurnID is empty nevertheless
	heartbeat     = "heartbeat"
	// cronPrefix is the prefix of a scheduled job's key, agent:cron-<job>-<uuid>. Its text is the job's. It gets
	// context, and is not recorded.
	cronPrefix = "agent:cron-"
	// systemPrefix is the prefix of a user message that PicoClaw wrote: the result of a sub-agent, "[System:
	// async:spawn] ...".
	systemPrefix = "[System: "
)

// sideQuestion is the session of a /btw, which has no key, turn or event.
const sideQuestion = "btw"

// ofPerson reports whether a person speaks in a session. The sender "cron" means nothing, because the command line uses
// it for its user.
func ofPerson(sessionKey, senderID string) bool {
	return !strings.HasPrefix(sessionKey, subTurnPrefix) && sessionKey != heartbeat && senderID != heartbeat
}

// beforeLLM returns the result of hook.before_llm: the request with the context at the end of its last user message, or
// continue without changes.
func (h *Hook) beforeLLM(ctx context.Context, params json.RawMessage) []byte {
	unchanged := []byte(resultContinue)
	message, found := h.contextFor(ctx, params)
	if found == "" {
		return unchanged
	}
	request := message.with(found)
	result := resultModify(request)
	if len(result) > maxAnswer {
		// PicoClaw always restores its own tool definitions, with a warning.
		var err error
		if request, err = withoutTools(request); err == nil {
			result = resultModify(request)
		}
	}
	if len(result) > maxAnswer {
		h.log.Warn("context is absent: the request with it is longer than PicoClaw reads", "bytes", len(result), "limit",
			maxAnswer)
		return unchanged
	}
	return result
}

// contextFor returns the context for a request, and the message that it belongs to; "" means none.
func (h *Hook) contextFor(ctx context.Context, params json.RawMessage) (*userMessage, string) {
	var p beforeParams
	if err := json.Unmarshal(params, &p); err != nil {
		h.unknown("context is absent", err)
		return nil, ""
	}
	if h.o.Problem != nil || !ofPerson(p.Meta.SessionKey, p.Context.Inbound.SenderID) {
		return nil, ""
	}
	message, err := lastUserMessage(params)
	if err != nil {
		h.unknown("context is absent", err)
		return nil, ""
	}
	if message == nil || strings.TrimSpace(message.text) == "" {
		return nil, ""
	}
	if who := p.speaker(); !h.allowed(h.scopeOf(who), who) {
		return nil, ""
	}
	return message, h.contextOf(ctx, &p, params, message.text)
}

// contextOf retrieves once for each turn.
func (h *Hook) contextOf(ctx context.Context, p *beforeParams, params []byte, query string) string {
	session := p.Meta.SessionKey
	if session == "" || p.Meta.TurnID == "" {
		return h.retrieve(ctx, h.scopeOf(p.speaker()), h.sessionID(""), query)
	}
	key := turnKey{session, p.Meta.TurnID}
	t := h.turns.at(key, p.Meta.Iteration, query)
	h.turns.saw(key, userTexts(params))
	t.once.Do(func() { t.context = h.retrieve(ctx, h.scopeOf(p.speaker()), h.sessionID(session), query) })
	return t.context
}

// speaker returns the person who speaks in a request, and where.
func (p *beforeParams) speaker() speaker {
	in := &p.Context.Inbound
	return speaker{agent: p.Meta.AgentID, session: p.Meta.SessionKey, channel: in.Channel, sender: in.SenderID}
}

// retrieve asks the slot, for as long as a turn can wait.
func (h *Hook) retrieve(ctx context.Context, scope abi.MemoryScope, session, query string) string {
	ctx, cancel := context.WithTimeout(ctx, h.o.Timeout)
	defer cancel()
	result, err := h.o.Slot.Retrieve(ctx, &abi.RetrieveRequest{Query: query, Scope: scope, SessionID: session,
		Budget: h.o.Budget})
	if err != nil {
		e := abi.AsError(err)
		h.log.Warn("context is absent in this turn: the slot gave none", "code", e.Code, "error", e.Message, "hint", e.Hint)
		return ""
	}
	return result.FormattedContext
}
