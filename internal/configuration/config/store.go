package config

import (
	"net/url"
	"slices"
	"strings"
)

// Store says where state, ledger and mode are kept: in a file of the data folder, unless a database is named.
type Store struct {
	Postgres Postgres `koanf:"postgres"`
}

// Postgres is a database in place of the file. The data folder then only holds what belongs to this machine.
type Postgres struct {
	// URL is postgres://USER@HOST:PORT/DATABASE, "" for the file. It may name several hosts separated by commas, and
	// contains no password.
	URL string `koanf:"url"`
	// Password names a secret. Without one, libpq's environment and files provide the password.
	Password struct {
		Secret string `koanf:"secret"`
	} `koanf:"password"`
	// Schema is the PostgreSQL schema of the tables, "" for "memhost".
	Schema string `koanf:"schema"`
	// Connections is the most connections that this host opens, 0 for a share of what the server allows.
	Connections int `koanf:"connections"`
	// Direct is the address of the server itself if URL is that of a pooler.
	Direct struct {
		URL      string `koanf:"url"`
		Password struct {
			Secret string `koanf:"secret"`
		} `koanf:"password"`
	} `koanf:"direct"`
}

// finishStore checks the database's address, its secret, and options that cannot be combined with it.
func (l *loader) finishStore() {
	c := l.config
	p := c.Store.Postgres
	add := func(name, format string, args ...any) {
		path := append([]string{"store", "postgres"}, strings.Split(name, ".")...)
		l.problems.add(l.origin(path...), path, format, args...)
	}
	if p.URL == "" {
		const alone = "is set, but store.postgres.url is not: set the URL too, or remove it"
		if p.Password.Secret != "" {
			add("password.secret", alone)
		}
		if p.Schema != "" {
			add("schema", alone)
		}
		if p.Direct.URL != "" {
			add("direct.url", alone)
		}
		return
	}
	if c.Data.Files {
		l.problems.add(l.origin("data", "files"), []string{"data", "files"}, "is not possible with store.postgres.url, because "+
			"one host does not see what the others commit: remove it; memhost export writes a scope's files")
	}
	password := func(name, url, secretName string) {
		hosts, wrong := postgresHosts(url)
		if wrong != "" {
			add(name+"url", "%s", wrong)
			return
		}
		if secretName == "" {
			return
		}
		secret, there := c.Secrets[secretName]
		switch {
		case !there:
			add(name+"password.secret", "names a secret that is not in secrets: write secrets: {NAME: {env: VARIABLE, origin: "+
				"%q}}, and {secret: NAME} here", "postgres://"+hosts[0])
		case secret.Origin != "postgres://"+hosts[0] && secret.Origin != "postgresql://"+hosts[0]:
			add(name+"password.secret", "may go to %s only, by its origin; this is %s", secret.Origin, "postgres://"+hosts[0])
		}
	}
	password("", p.URL, p.Password.Secret)
	switch d := p.Direct; {
	case d.URL != "":
		password("direct.", d.URL, d.Password.Secret)
	case d.Password.Secret != "":
		add("direct.password.secret", "is set, but store.postgres.direct.url is not: set the URL too, or remove it")
	}
	if c.Memory.Archive {
		at := []string{"memory", "archive"}
		l.problems.add(l.origin(at...), at, "does not go together with store.postgres: the archive is kept in the data "+
			"folder, and its receipts would be in the database")
	}
}

// postgresHosts returns the hosts of a URL, such as "db1:5432". wrong describes a mistake without repeating anything of
// the URL. It does not parse the whole with package url, which accepts one host only.
func postgresHosts(text string) (hosts []string, wrong string) {
	const want = "want postgres://USER@HOST:PORT/DATABASE"
	rest, isShort := strings.CutPrefix(text, "postgres://")
	rest, isLong := strings.CutPrefix(rest, "postgresql://")
	if isShort == isLong {
		return nil, want
	}
	authority, query := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, query = rest[:i], rest[i:]
	}
	const asSecret = "has a password: write it as a secret, store.postgres.password: {secret: NAME}"
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		if strings.Contains(authority[:i], ":") {
			return nil, asSecret
		}
		authority = authority[i+1:]
	}
	if u, err := url.Parse(query); err != nil || u.Query().Has("password") {
		if err != nil {
			return nil, want
		}
		return nil, asSecret
	}
	hosts = strings.Split(authority, ",")
	if slices.Contains(hosts, "") {
		return nil, want
	}
	return hosts, ""
}
