package chat

import "strings"

// Params are the parameters of a request that some endpoints refuse. The zero value is what is asked first.
type Params struct {
	// OldLimit: the limit of an answer's tokens is called max_tokens, as before 2024, and not max_completion_tokens.
	OldLimit bool `json:"max_tokens,omitempty"`
	// NoTemperature and NoSeed: the endpoint refuses the parameter, and it is not sent.
	NoTemperature bool `json:"no_temperature,omitempty"`
	NoSeed        bool `json:"no_seed,omitempty"`
}

// Limit is the name of the parameter that bounds an answer. There is always one: a bound of the cost is never dropped.
func (p Params) Limit() string {
	if p.OldLimit {
		return "max_tokens"
	}
	return "max_completion_tokens"
}

// Names lists what is sent, for a record of a run: "max_completion_tokens, temperature, seed".
func (p Params) Names() string {
	names := p.Limit()
	if !p.NoTemperature {
		names += ", temperature"
	}
	if !p.NoSeed {
		names += ", seed"
	}
	return names
}

// After is what to ask with after an endpoint has refused a request with a status and a body. ok is false where the
// refusal names no parameter that can be left out or named otherwise.
func (p Params) After(status int64, body []byte) (next Params, ok bool) {
	if status != 400 && status != 422 {
		return p, false
	}
	said, next := strings.ToLower(string(body)), p
	switch {
	case strings.Contains(said, p.Limit()) && !p.OldLimit:
		next.OldLimit = true
	case strings.Contains(said, "temperature") && !p.NoTemperature:
		next.NoTemperature = true
	case strings.Contains(said, "seed") && !p.NoSeed:
		next.NoSeed = true
	default:
		return p, false
	}
	return next, true
}
