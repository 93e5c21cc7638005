// Command gateway tests a gateway of this repository against its real database and the rule-answering stub: linter, types, tests, installed from the checkout and as a
// wheel. `make test-gateway GATEWAY=graphiti` calls it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/memhost/memhost/testenv"
)

var gateways = map[string]func(context.Context, *testenv.Env) error{
	"graphiti": func(ctx context.Context, e *testenv.Env) error {
		return e.TestGraphitiGateway(ctx, func(text string) { fmt.Print(text) })
	},
}

func main() {
	keep := flag.Bool("keep", false, "leave the temporary folder with data and logs in place")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Arg(0), *keep); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string, keep bool) error {
	test, ok := gateways[name]
	if !ok {
		return fmt.Errorf("no gateway %q is tested here; there is graphiti", name)
	}
	env, err := testenv.New(testenv.Options{Out: os.Stdout, Keep: keep})
	if err != nil {
		return err
	}
	return errors.Join(test(ctx, env), env.Close())
}
