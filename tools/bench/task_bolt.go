package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/fakes/bolt"
	"github.com/memhost/memhost/internal/test/testguest"
	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

// boltRows is the number of rows that a statement returns.
const boltRows = 1000

// boltTask brings the rows of a database to the guest: to the host as JSON, and into the guest's memory value by value.
// The database is the fake, which has encoded its rows in advance.
func boltTask() task {
	const id, driver = "bolt", "the driver alone"
	pulled := Row{ID: id + "/rows", What: fmt.Sprintf("%d rows of a database into the guest", boltRows),
		Unit: Nanoseconds, By: []string{byMemhost, driver},
		Bars: []Bar{{Kind: Ratio, Over: driver, Limit: 1.5}}}
	read := Row{ID: id + "/values", What: "the same, every value read by the guest", Unit: Nanoseconds,
		By: []string{byMemhost, driver}}
	p := pace{stretch: time.Microsecond, round: 200 * time.Millisecond, stretches: 15}
	return inTurns(id, p, []Row{pulled, read}, func(ctx context.Context, e *env) ([]contestant, error) {
		module, err := host.Inspect(testguest.Unhurried(), host.Limits{})
		if err != nil {
			return nil, err
		}
		statement := ""
		for _, r := range module.Manifest.Routes {
			if r.Name == boltRoute {
				statement = r.Statement
			}
		}
		server, err := e.database(statement)
		if err != nil {
			return nil, err
		}
		url := server.URL("bolt")
		s, err := e.slot(ctx, host.Options{}, boltProvider(url))
		if err != nil {
			return nil, err
		}
		retrieve := func(command string) func(int) error {
			r := ask(command + " " + boltRoute)
			return repeat(func() error { _, err := s.Retrieve(ctx, r); return err })
		}
		d, err := neo4j.NewDriverWithContext(url, neo4j.BasicAuth("neo4j", boltPassword, ""))
		if err != nil {
			return nil, err
		}
		e.later(func() error { return d.Close(context.WithoutCancel(ctx)) })
		alone := repeat(func() error { return collect(ctx, d, statement) })
		return []contestant{by(pulled.ID, byMemhost, retrieve("bolt_pull")),
			by(read.ID, byMemhost, retrieve("bolt_count")),
			{cells: []cell{{pulled.ID, driver}, {read.ID, driver}}, run: alone}}, nil
	})
}

const (
	boltPassword = "bench-password"
	// boltRoute is a statement of the probe without parameters.
	boltRoute = "one"
)

func boltProvider(url string) host.ProviderConfig {
	return host.ProviderConfig{Name: "probe", Module: testguest.Unhurried(), Source: "builtin",
		Block:   abi.Raw(fmt.Sprintf(`{"db":%q,"db_password":{"secret":"P"}}`, url)),
		Secrets: map[string]host.Secret{"P": {Value: func() (string, error) { return boltPassword, nil }, Origin: url}}}
}

// database serves rows like Graphiti's answers to a query for facts: two uuids, a sentence, two times and a list.
func (e *env) database(statement string) (*bolt.Server, error) {
	s, err := bolt.New(bolt.Options{Password: boltPassword})
	if err != nil {
		return nil, err
	}
	e.later(func() error { s.Stop(); return nil })
	a := bolt.Answer{Columns: []string{"fact", "episode", "text", "valid_ms", "invalid_ms", "dangling", "episodes"}}
	for i := range boltRows {
		id := fmt.Sprintf("9e0c4f1a-0000-4000-8000-%012d", i)
		a.PackedRows = append(a.PackedRows, bolt.Pack(nil,
			[]any{id, strings.Replace(id, "9e", "a1", 1),
				fmt.Sprintf("user_a prefers aisle seats on business trips, said for the time number %d", i),
				int64(1740821400000 + i), nil, false, []any{id, id}}))
	}
	s.Handle(statement, bolt.Statement{Answer: func(context.Context, bolt.Query) bolt.Answer { return a }})
	return s, nil
}

// collect runs the statement like a program that only uses the driver.
func collect(ctx context.Context, d neo4j.DriverWithContext, statement string) (err error) {
	session := d.NewSession(ctx, neo4j.SessionConfig{AccessMode: neo4j.AccessModeRead})
	defer func() { err = errors.Join(err, session.Close(ctx)) }()
	result, err := session.Run(ctx, statement, nil)
	if err != nil {
		return err
	}
	records, err := result.Collect(ctx)
	if err == nil && len(records) != boltRows {
		err = fmt.Errorf("%d rows", len(records))
	}
	return err
}
