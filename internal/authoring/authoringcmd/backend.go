package authoringcmd

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/examples/tiny"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/memhost/memhost/internal/text/jsonpointer"
)

const backendHelp = `Serves the tiny backend until it is interrupted: a memory over HTTP as small as one can be, for the first steps of a plugin. It keeps texts in scopes and
finds those that share a word with a query; nothing of it is left when it ends.

  PUT    /scopes/{scope}                                      {"existed": false}
  POST   /scopes/{scope}/events   {event_id, text, created_at, labels, session}   {"id": "m1", "status": "stored" or "queued"}
  POST   /scopes/{scope}/search   {query, limit, labels, session}                 {"items": [item with score], "total": n}
  GET    /scopes/{scope}/events?event_id=E                    {"items": [item]}; without event_id all of the scope
  GET    /scopes/{scope}/status                               {"pending": n}
  DELETE /scopes/{scope}                                      {"removed": n}
  GET    /health                                              {"status": "ok", "version": "1"}

A scope that is not there answers 404 {"error": "no such scope"}.`

// The backends of --against, and of the command backend.
const (
	backendTiny      = "tiny"
	backendTinyQueue = "tiny-queue"
)

// defaultTinyListen is where a plugin that `memhost new` wrote looks for the tiny backend.
const defaultTinyListen = "127.0.0.1:7711"

func (a *commands) backendCommand() *cobra.Command {
	var listen string
	var queue int
	cmd := &cobra.Command{
		Use: "backend tiny", Short: "Serve a tiny backend to try a plugin with", Long: backendHelp,
		Args: cobra.ExactArgs(1), ValidArgs: []string{backendTiny},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != backendTiny {
				return cli.UsageError("no backend called "+cli.Quote(args[0])+" is built in",
					"the one there is: memhost backend tiny")
			}
			if queue < 0 {
				return cli.UsageError("--queue: found "+strconv.Itoa(queue)+", want 0 or more", "for example --queue 1")
			}
			return a.backend(cmd.Context(), listen, &tiny.Backend{QueueLooks: queue})
		},
	}
	cmd.Flags().StringVar(&listen, "listen", defaultTinyListen, "host:port")
	cmd.Flags().IntVar(&queue, "queue", 0, "make it a queue: an event is stored when the status of its scope has "+
		"been asked for so many times")
	return cmd
}

func (a *commands) backend(ctx context.Context, listen string, b *tiny.Backend) error {
	ctx, stop := a.UntilInterrupted(ctx)
	defer stop()
	url, end, err := serveTiny(listen, b)
	if err != nil {
		return err
	}
	defer end()
	if a.Out.JSON {
		if err := a.Out.Object(map[string]string{"url": url}); err != nil {
			return err
		}
	} else {
		a.Out.Print("the tiny backend: %s, until Ctrl-C\n", url)
	}
	<-ctx.Done()
	a.Interrupted = false // that is how it is meant to end
	return nil
}

// serveTiny serves a backend; end must be called.
func serveTiny(listen string, b *tiny.Backend) (url string, end func(), err error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return "", nil, abi.WrapError(abi.CodeInvalidArgument, "the tiny backend: "+err.Error(),
			err).WithHint("--listen HOST:PORT takes another address; port 0 is a free one")
	}
	server := &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = server.Close(); <-ended }, nil
}

// backendsFor starts the backend that --against names and makes every HTTP origin of the block lead there. end must be
// called.
func backendsFor(against string, m *cli.Module, block abi.Raw) (_ abi.Raw, end func(), err error) {
	b := &tiny.Backend{}
	switch against {
	case backendTiny:
	case backendTinyQueue:
		b.QueueLooks = 1
	default:
		return nil, nil, cli.UsageError("--against: no backend called "+cli.Quote(against)+" is built in",
			"there are "+backendTiny+" and "+backendTinyQueue)
	}
	url, end, err := serveTiny("127.0.0.1:0", b)
	if err != nil {
		return nil, nil, err
	}
	changed, err := leadTo(url, m, block)
	if err != nil {
		end()
		return nil, nil, err
	}
	return changed, end, nil
}

// leadTo puts a URL into a block wherever the manifest has an HTTP origin from.
func leadTo(url string, m *cli.Module, block abi.Raw) (abi.Raw, error) {
	value, err := schema.Decode(block, nil)
	if err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, "the block: "+err.Error(), err)
	}
	tree, ok := value.(map[string]any)
	if !ok {
		tree = map[string]any{}
	}
	led := false
	for _, o := range m.Info.Manifest.Origins {
		if o.Protocol == abi.ProtocolHTTP {
			led = jsonpointer.Set(tree, o.From, url) || led
		}
	}
	if !led {
		return nil, cli.UsageError("--against: the manifest of "+m.Name+" has no HTTP origin that could lead to another "+
			"backend", "leave --against out")
	}
	return schema.Canonical(tree), nil
}
