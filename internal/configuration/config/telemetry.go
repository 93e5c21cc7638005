package config

import (
	"net/url"
	"strings"
)

// Telemetry says where spans are sent.
type Telemetry struct {
	OTLP OTLP `koanf:"otlp"`
	// Propagate also sends the header traceparent to backends.
	Propagate bool `koanf:"propagate"`
}

// OTLP is a collector of OpenTelemetry.
type OTLP struct {
	// Endpoint is the collector's URL without /v1/traces; "" for none.
	Endpoint string `koanf:"endpoint"`
	// Headers are sent with every request, by name.
	Headers map[string]HeaderSecret `koanf:"headers"`
	// SamplePercent is the share of traces that are recorded.
	SamplePercent int64 `koanf:"sample_percent"`
}

// HeaderSecret is a header's value: the name of a secret.
type HeaderSecret struct {
	Secret string `koanf:"secret"`
}

// ownHeaders are set by memhost itself.
func ownHeaders() []string {
	return []string{"accept-encoding", "connection", "content-encoding", "content-length", "content-type", "host", "te",
		"trailer", "transfer-encoding", "upgrade", "user-agent"}
}

// finishTelemetry checks the collector's address and its headers' secrets.
func (l *loader) finishTelemetry() {
	o := l.config.Telemetry.OTLP
	at := func(name ...string) []string { return append([]string{"telemetry", "otlp"}, name...) }
	add := func(path []string, format string, args ...any) {
		l.problems.add(l.origin(path...), path, format, args...)
	}
	if o.Endpoint == "" {
		if len(o.Headers) > 0 {
			add(at("headers"), "is set, but telemetry.otlp.endpoint is not: set the endpoint too, or remove it")
		}
		return
	}
	u, err := url.Parse(o.Endpoint)
	const want = "want http://HOST:PORT or https://HOST"
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		add(at("endpoint"), "%s, the collector's URL", want)
		return
	case u.User != nil:
		add(at("endpoint"), "holds credentials: send them in a header, "+
			"telemetry.otlp.headers: {Authorization: {secret: NAME}}")
		return
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		add(at("endpoint"), "has a query or a fragment, %s", want)
		return
	case strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/v1/traces"):
		add(at("endpoint"), "ends in /v1/traces, which is added: leave it out")
		return
	}
	for _, name := range sortedKeys(o.Headers) {
		secret, there := l.config.Secrets[o.Headers[name].Secret]
		switch own := u.Scheme + "://" + u.Host; {
		case isOneOf(strings.ToLower(name), ownHeaders()):
			add(at("headers", name), "is a header that memhost sets by itself: remove it")
		case !there:
			add(at("headers", name), "names a secret that is not in secrets: write secrets: {NAME: {env: VARIABLE, "+
				"origin: %q}}, and {secret: NAME} here", own)
		case !sameOrigin(secret.Origin, u):
			add(at("headers", name), "may go to %s only, by its origin; this is %s", secret.Origin, own)
		}
	}
}

// sameOrigin compares scheme, host and port of two http URLs.
func sameOrigin(text string, u *url.URL) bool {
	port := func(u *url.URL) string {
		switch {
		case u.Port() != "":
			return u.Port()
		case u.Scheme == "https":
			return "443"
		}
		return "80"
	}
	o, err := url.Parse(text)
	return err == nil && o.Scheme == u.Scheme && strings.EqualFold(o.Hostname(), u.Hostname()) && port(o) == port(u)
}
