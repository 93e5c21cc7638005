package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// ScopedToken is a token that may record and retrieve in one scope, and in one session of it if Session is set. Every
// other route returns denied (403). It is made from the slot's token and needs no state: every host with the same token
// accepts it, and changing the slot's token revokes it.
type ScopedToken struct {
	// Scope must be named exactly as it is here, including agent_id and backend_namespace. RunID and PersonaID are
	// required.
	Scope abi.MemoryScope `json:"scope"`
	// Session is the only session_id that may be named; empty: any.
	Session string `json:"session,omitempty"`
	// Expires is when it expires; the zero time: never.
	Expires time.Time `json:"expires,omitzero"`
}

// Issue makes the text of a scoped token from the slot's token.
//
// Errors: invalid_argument for a slot without a token, whose callers may do everything, and for a scope without run_id
// or persona_id.
func (t ScopedToken) Issue(slotToken string) (string, error) {
	switch {
	case slotToken == "":
		return "", abi.NewError(abi.CodeInvalidArgument, "a scoped token is made from the slot's token, and there is "+
			"none: a slot without a token serves every caller").
			WithHint("set MEMHOST_TOKEN, here and where the slot starts, for instance to the output of: openssl rand -hex 32")
	case t.Scope.RunID == "" || t.Scope.PersonaID == "":
		return "", abi.NewError(abi.CodeInvalidArgument, "a scoped token needs run_id and persona_id")
	}
	t.Expires = t.Expires.UTC().Truncate(time.Second)
	claims, err := json.Marshal(t)
	if err != nil {
		return "", abi.WrapError(abi.CodeInvalidArgument, "scoped token: "+err.Error(), err)
	}
	body := wire.ScopedTokenPrefix + base64.RawURLEncoding.EncodeToString(claims)
	return body + "." + base64.RawURLEncoding.EncodeToString(signScoped(scopedKey(slotToken), body)), nil
}

// scopedKey derives the key of scoped tokens, so that they reveal nothing about the slot's token.
func scopedKey(slotToken string) []byte { return signScoped([]byte(slotToken), "memhost scoped token") }

func signScoped(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// readScoped parses a scoped token signed by key. It returns nil for any other text.
func readScoped(key []byte, text string) *ScopedToken {
	i := strings.LastIndexByte(text, '.')
	if !strings.HasPrefix(text, wire.ScopedTokenPrefix) || i < len(wire.ScopedTokenPrefix) {
		return nil
	}
	signature, err := base64.RawURLEncoding.Strict().DecodeString(text[i+1:])
	if err != nil || !hmac.Equal(signature, signScoped(key, text[:i])) {
		return nil
	}
	claims, err := base64.RawURLEncoding.DecodeString(text[len(wire.ScopedTokenPrefix):i])
	if err != nil {
		return nil
	}
	t := new(ScopedToken)
	if json.Unmarshal(claims, t) != nil {
		return nil
	}
	return t
}

// live returns why the token may not be used at this time, or nil.
func (t *ScopedToken) live(now time.Time) *abi.Error {
	if t.Expires.IsZero() || now.Before(t.Expires) {
		return nil
	}
	return abi.NewError(abi.CodeUnauthenticated, "the scoped token expired at "+t.Expires.Format(time.RFC3339)).
		WithReason("token").WithHint("`memhost token` makes a new one")
}

type scopedTokenKey struct{}

func withScopedToken(ctx context.Context, t *ScopedToken) context.Context {
	return context.WithValue(ctx, scopedTokenKey{}, t)
}

// scopedToken returns the scoped token of a request; nil if it has another token or none.
func scopedToken(ctx context.Context) *ScopedToken {
	t, _ := ctx.Value(scopedTokenKey{}).(*ScopedToken)
	return t
}

// checkRetrieve rejects another scope or session than the token's. A nil token rejects nothing.
func (t *ScopedToken) checkRetrieve(q *abi.RetrieveRequest) error {
	if t == nil {
		return nil
	}
	return t.check(q.SessionID, [][3]string{
		{"scope.run_id", q.Scope.RunID, t.Scope.RunID},
		{"scope.persona_id", q.Scope.PersonaID, t.Scope.PersonaID},
		{"scope.agent_id", q.Scope.AgentID, t.Scope.AgentID},
		{"scope.backend_namespace", q.Scope.BackendNamespace, t.Scope.BackendNamespace},
	})
}

// checkEvent is checkRetrieve for an event, which has its scope in several fields.
func (t *ScopedToken) checkEvent(e *abi.MemoryEvent) error {
	if t == nil {
		return nil
	}
	return t.check(e.SessionID, [][3]string{
		{"run_id", e.RunID, t.Scope.RunID},
		{"user_id", e.UserID, t.Scope.PersonaID},
		{"agent_id", e.AgentID, t.Scope.AgentID},
	})
}

// check compares the values of a request with those that the token allows. Each field is name, request's value, token's
// value.
func (t *ScopedToken) check(session string, fields [][3]string) error {
	for _, f := range fields {
		if f[1] != f[2] {
			return deniedScoped(f[0] + ": this token is for another scope")
		}
	}
	if t.Session != "" && session != t.Session {
		return deniedScoped("session_id: this token is for another session")
	}
	return nil
}

func deniedScoped(message string) *abi.Error {
	return abi.NewError(abi.CodeDenied, message).WithReason("scoped_token").
		WithHint("a scoped token records and retrieves in the one scope, and session, that it was made for; the slot's own " +
			"token may do everything")
}
