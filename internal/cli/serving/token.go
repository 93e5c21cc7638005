package serving

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/doors/server"
)

const tokenHelp = `Makes a token that may record and retrieve in one scope of a slot, and nothing else: every other request, and every other scope, answers 403. With --session
it holds for that session_id only. It is for a program that should not have the slot's own token, such as an agent that is being tested.

The token is made from the slot's, in MEMHOST_TOKEN, without asking the slot. Every host that was started with the same token accepts it. It ends when its time
is over, or when the slot gets another token.`

func (a *commands) tokenCommand() *cobra.Command {
	var scope cli.ScopeFlags
	var session string
	var lasts time.Duration
	cmd := &cobra.Command{
		Use: "token", Short: "Make a token for one scope, and one session of it", Long: tokenHelp, Args: cobra.NoArgs,
		Example: "  memhost token --run r1 --user ann --for 24h",
		RunE: func(*cobra.Command, []string) error {
			if lasts < 0 {
				return cli.UsageError("--for is negative", "give a time such as 24h, or 0 for a token that does not expire")
			}
			if err := scope.Complete(a.App); err != nil {
				return err
			}
			t := server.ScopedToken{Scope: scope.Scope(), Session: session}
			if lasts > 0 {
				t.Expires = time.Now().Add(lasts)
			}
			text, err := t.Issue(a.Getenv("MEMHOST_TOKEN"))
			if err != nil {
				return err
			}
			if a.Out.JSON {
				return a.Out.Object(map[string]any{"token": text})
			}
			a.Out.Print("%s\n", text)
			return nil
		},
	}
	scope.Add(cmd.Flags())
	cmd.Flags().StringVar(&session, "session", "", "the only session_id that requests may name (default: any)")
	cmd.Flags().DurationVar(&lasts, "for", 24*time.Hour, "how long it lasts; 0: it does not expire")
	return cmd
}
