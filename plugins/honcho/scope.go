package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// Honcho's ids are ^[a-zA-Z0-9_-]+$, up to 512 characters, up to 100 before 3.0.7 (src/schemas/api.py). memhost's ids
// have at most 100.
const (
	maxNativeID = 100
	maxPrefix   = 8
)

var (
	// joinedRules are the rules for ids of several parts.
	joinedRules = sdk.IDRules{Plain: sdk.AlphaNumeric, Escape: '_', Separator: '-', Max: maxNativeID - maxPrefix}
	// singleRules are the rules for ids of one part. They need no separator, so "-" is plain: the deriver writes peer
	// ids verbatim.
	singleRules = sdk.IDRules{Plain: func(b byte) bool { return sdk.AlphaNumeric(b) || b == '-' }, Escape: '_',
		Max: maxNativeID - maxPrefix}
	// labelRules are the rules for metadata values that are filtered by: a value "*" would match every row.
	labelRules = sdk.IDRules{Plain: func(b byte) bool { return b >= ' ' && b != 0x7f && b != '*' }, Escape: '%'}
)

// label escapes a text for filtering. Texts without "*", "%" and control characters are unchanged.
func label(text string) string {
	if text == "" {
		return ""
	}
	return sdk.NativeID(labelRules, text)
}

// unlabel reverses label.
func unlabel(text string) string {
	if strings.IndexByte(text, labelRules.Escape) < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if b, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				out = append(out, byte(b))
				i += 2
				continue
			}
		}
		out = append(out, text[i])
	}
	return string(out)
}

// native holds the ids by which Honcho addresses a generation of a scope. user, agent, tool and system are always
// distinct peers.
type native struct {
	workspace string
	user      string // the user's peer
	agent     string // the assistant's peer
	// others is the suffix of the other peers' ids.
	others string
	parts  []string // in a fixed workspace: the whole scope, the prefix of session ids
}

func (n *native) tool() string   { return "tool-" + n.others }
func (n *native) system() string { return "system-" + n.others }

// native returns the ids of this call's scope.
func (s *settings) native(c *sdk.Call) *native {
	parts := []string{s.config.Provider, s.config.Namespace, c.Scope.RunID, c.Scope.PersonaID, c.Scope.AgentID,
		sdk.Itoa(c.Generation)}
	user, n := s.userNames[c.Scope.PersonaID], &native{workspace: s.fixed}
	if s.template != nil {
		n.workspace = s.template.Name(s.config.Namespace, c.Scope, maxNativeID)
	}
	if s.shared() {
		n.others, n.parts = sdk.NativeID(joinedRules, parts...), parts
		n.user, n.agent = nameOr(user, "user")+"-"+n.others, nameOr(s.assistantName, "agent")+"-"+n.others
		return n
	}
	n.workspace, n.others = "mh-"+sdk.NativeID(joinedRules, parts...), "default"
	if c.Scope.AgentID != "" {
		n.others = sdk.NativeID(singleRules, c.Scope.AgentID)
	}
	n.user = nameOr(user, "user-"+sdk.NativeID(singleRules, c.Scope.PersonaID))
	n.agent = nameOr(s.assistantName, "agent-"+n.others)
	return n
}

// nameOr returns a peer's configured name, or its default name.
func nameOr(name, otherwise string) string {
	if name != "" {
		return name
	}
	return otherwise
}

// defaultUser returns the id of the user's peer if the scope has its own workspace and no name is configured.
func (b *backend) defaultUser() string { return "user-" + sdk.NativeID(singleRules, b.Scope.PersonaID) }

// session is the native id of a session.
func (n *native) session(id string) string {
	if n.parts != nil {
		return "s-" + sdk.NativeID(joinedRules, append(slices.Clone(n.parts), id)...)
	}
	return "s-" + sdk.NativeID(singleRules, id)
}

// againPrefix begins the ids of sessions with repeated turns.
const againPrefix = "again-"

// again returns the id of the session in which turns of a session are repeated for another derivation.
func (n *native) again(session string) string { return againPrefix + strings.TrimPrefix(session, "s-") }

// author is the peer of a message's speaker.
func (b *backend) author(m *abi.Message) string {
	switch m.Role {
	case abi.RoleAssistant:
		return b.agent
	case abi.RoleTool:
		return b.tool()
	case abi.RoleSystem:
		return b.system()
	}
	if sdk.Named(m) && b.speakerMode == speakersPeers {
		return b.speakerPeer(m.Name)
	}
	return b.user
}

// peers are created with the scope; those of named speakers follow with their first message.
func (n *native) peers() []string { return []string{n.user, n.agent, n.tool(), n.system()} }

// allPeers are the peers of the scope.
func (b *backend) allPeers() []string { return append(b.peers(), b.people()[1:]...) }

// observed reports whether the deriver processes a peer's messages.
func (b *backend) observed(peer string) bool {
	return slices.Contains(b.people(), peer) || b.observeAssistant && peer == b.agent
}

func (n *native) ids() map[string]string {
	return map[string]string{"workspace": n.workspace, "user_peer": n.user, "assistant_peer": n.agent,
		"tool_peer": n.tool(), "system_peer": n.system()}
}
