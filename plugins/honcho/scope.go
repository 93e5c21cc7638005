package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// Honcho's ids are ^[a-zA-Z0-9_-]+$, up to 512 characters, up to 100 before 3.0.7 (src/schemas/api.py). Ours stay
// within 100.
const (
	maxNativeID = 100
	maxPrefix   = 8
)

var (
	// joined is for ids of several parts.
	joined = sdk.IDRules{Plain: sdk.AlphaNumeric, Escape: '_', Separator: '-', Max: maxNativeID - maxPrefix}
	// single is for ids of one part. The separator is not used, so "-" is plain: peer ids appear verbatim in what the
	// deriver writes.
	single = sdk.IDRules{Plain: func(b byte) bool { return sdk.AlphaNumeric(b) || b == '-' }, Escape: '_',
		Max: maxNativeID - maxPrefix}
	// labelled is for the values of metadata that are filtered by: a value "*" would match every row.
	labelled = sdk.IDRules{Plain: func(b byte) bool { return b >= ' ' && b != 0x7f && b != '*' }, Escape: '%'}
)

// label makes a text safe to filter by. Texts without "*", "%" and control characters stay as they are.
func label(text string) string {
	if text == "" {
		return ""
	}
	return sdk.NativeID(labelled, text)
}

// unlabel is the text that label was given.
func unlabel(text string) string {
	if strings.IndexByte(text, labelled.Escape) < 0 {
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

// native is how Honcho addresses a generation of a scope. user, agent, tool and system are distinct peers whatever the
// ids are.
type native struct {
	workspace string
	user      string // the user's peer
	agent     string // the assistant's peer
	// others is what the ids of the other peers end in.
	others string
	parts  []string // of a fixed workspace: the whole scope, with which the ids of sessions begin
}

func (n *native) tool() string   { return "tool-" + n.others }
func (n *native) system() string { return "system-" + n.others }

// native is how this call's scope is addressed.
func (s *settings) native(c *sdk.Call) *native {
	parts := []string{s.config.Provider, s.config.Namespace, c.Scope.RunID, c.Scope.PersonaID, c.Scope.AgentID,
		sdk.Itoa(c.Generation)}
	user, n := s.userNames[c.Scope.PersonaID], &native{workspace: s.fixed}
	if s.template != nil {
		n.workspace = s.template.Name(s.config.Namespace, c.Scope, maxNativeID)
	}
	if s.shared() {
		n.others, n.parts = sdk.NativeID(joined, parts...), parts
		n.user, n.agent = named(user, "user")+"-"+n.others, named(s.assistantName, "agent")+"-"+n.others
		return n
	}
	n.workspace, n.others = "mh-"+sdk.NativeID(joined, parts...), "default"
	if c.Scope.AgentID != "" {
		n.others = sdk.NativeID(single, c.Scope.AgentID)
	}
	n.user = named(user, "user-"+sdk.NativeID(single, c.Scope.PersonaID))
	n.agent = named(s.assistantName, "agent-"+n.others)
	return n
}

// named is a peer's configured name, or what it is called without one.
func named(name, otherwise string) string {
	if name != "" {
		return name
	}
	return otherwise
}

// unnamed is the user's peer where the scope has a workspace of its own and no name is configured.
func (b *backend) unnamed() string { return "user-" + sdk.NativeID(single, b.Scope.PersonaID) }

// session is the native id of a session.
func (n *native) session(id string) string {
	if n.parts != nil {
		return "s-" + sdk.NativeID(joined, append(slices.Clone(n.parts), id)...)
	}
	return "s-" + sdk.NativeID(single, id)
}

// againPrefix begins the ids of sessions in which turns are said again.
const againPrefix = "again-"

// again is the session in which turns of a session are said again, to be derived again.
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
	if sdk.Named(m) && b.telling == speakersPeers {
		return b.speakerPeer(m.Name)
	}
	return b.user
}

// peers are those that are made with the scope; the speakers' follow with their first message.
func (n *native) peers() []string { return []string{n.user, n.agent, n.tool(), n.system()} }

// allPeers are the peers of the scope.
func (b *backend) allPeers() []string { return append(b.peers(), b.people()[1:]...) }

// observed says whether the deriver works on what a peer says.
func (b *backend) observed(peer string) bool {
	return slices.Contains(b.people(), peer) || b.observeAssistant && peer == b.agent
}

func (n *native) named() map[string]string {
	return map[string]string{"workspace": n.workspace, "user_peer": n.user, "assistant_peer": n.agent,
		"tool_peer": n.tool(), "system_peer": n.system()}
}
