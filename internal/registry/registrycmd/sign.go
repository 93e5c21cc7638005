package registrycmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/wholefile"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/registry"
	"github.com/memhost/memhost/internal/signing"
)

const signHelp = `Signs a module in a registry with a key, and attaches the signature to it there. What is signed is the digest that the name has now.

Keys and signatures are those of cosign: ` + "`cosign generate-key-pair`" + ` makes keys for this command, and
` + "`cosign verify --key KEY.pub --insecure-ignore-tlog`" + ` checks its signatures. They are in no transparency log.

--report FILE attaches what ` + "`memhost conformance --json`" + ` printed about this module, too, signed with the same key: a statement
of the kind ` + reportKind + `, which ` + "`cosign verify-attestation`" + ` checks.

Which signatures a slot wants is in modules.trust of its configuration; ` + "`memhost inspect oci://...`" + ` shows those that a module has.

The key's password is COSIGN_PASSWORD, or is asked for on the terminal.`

const newKeyHelp = `Writes a key pair: NAME.key, which signs and is encrypted with a password, and NAME.pub, which checks. Neither file may exist.

The password is COSIGN_PASSWORD, or is asked for on the terminal. An empty one leaves NAME.key as good as unencrypted.`

// envPassword is the variable that cosign uses.
const envPassword = "COSIGN_PASSWORD"

func (a *commands) signCommand() *cobra.Command {
	var key, report string
	cmd := &cobra.Command{
		Use: "sign oci://HOST/NAME:TAG", Short: "Sign a module in a registry", Long: signHelp,
		Args:    cobra.ExactArgs(1),
		Example: "  memhost sign new-key team\n  memhost sign oci://ghcr.io/team/mem:1.2 --key team.key",
		RunE: func(cmd *cobra.Command, args []string) error {
			if key == "" {
				return cli.UsageError("sign: --key: want the file of a private key", "`memhost sign new-key NAME` makes one")
			}
			return a.sign(cmd.Context(), args[0], key, report)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the file of the private key")
	cmd.Flags().StringVar(&report, "report", "", "attach a report of memhost conformance --json, signed")
	cmd.AddCommand(&cobra.Command{
		Use: "new-key NAME", Short: "Write a key pair, NAME.key and NAME.pub", Long: newKeyHelp, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.newKey(args[0]) },
	})
	return cmd
}

func (a *commands) sign(ctx context.Context, name, keyFile, reportFile string) error {
	r, err := registry.ParseReference(name)
	if err != nil {
		return err
	}
	key, err := a.privateKey(keyFile)
	if err != nil {
		return err
	}
	m, r, err := a.Fetch(ctx, r)
	if err != nil {
		return err
	}
	var report []byte
	if reportFile != "" {
		if report, err = readReport(reportFile, m); err != nil {
			return err
		}
	}
	if err := a.attachSigned(ctx, r, key, signing.Signature, json.RawMessage("{}")); err != nil {
		return err
	}
	if report != nil {
		if err := a.attachSigned(ctx, r, key, reportKind, report); err != nil {
			return err
		}
	}
	if a.Out.JSON {
		return a.Out.Object(map[string]any{"reference": r.String(), "digest": r.Digest, "name": m.Name,
			"signer": key.ID})
	}
	a.Out.Print("%s\nsigned by %s\n", r, key.ID)
	return nil
}

// attachSigned attaches a signed statement to the module that r names by its digest.
func (a *commands) attachSigned(
	ctx context.Context, r registry.Reference, key *signing.PrivateKey, kind string, says json.RawMessage,
) error {
	statement, err := key.Sign(kind, r.Digest, says)
	if err != nil {
		return err
	}
	client, err := a.RegistryClient()
	if err != nil {
		return err
	}
	notes := signing.Annotations(kind)
	notes["org.opencontainers.image.created"] = a.Now().UTC().Format(time.RFC3339)
	return client.Attach(ctx, r, signing.BundleType, statement, notes)
}

func (a *commands) privateKey(path string) (*signing.PrivateKey, error) {
	text, err := cli.ReadFile(path, cli.MaxKeyFile)
	if err != nil {
		return nil, err
	}
	password, err := a.password("password of " + path + ": ")
	if err != nil {
		return nil, err
	}
	key, err := signing.ReadPrivateKey(text, password)
	if err != nil {
		return nil, cli.InFile(path, err)
	}
	return key, nil
}

// password returns the password from the environment, even if it is empty, or else asks for it.
func (a *commands) password(prompt string) ([]byte, error) {
	if slices.ContainsFunc(a.Environ, func(pair string) bool { return strings.HasPrefix(pair, envPassword+"=") }) {
		return []byte(a.Getenv(envPassword)), nil
	}
	in, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil, cli.UsageError("no password: standard input is no terminal", "set "+envPassword)
	}
	fmt.Fprint(a.Out.Stderr, prompt)
	typed, err := term.ReadPassword(int(in.Fd()))
	a.Out.Note("")
	return typed, err
}

func (a *commands) newKey(name string) error {
	if name == "" || strings.HasSuffix(name, "/") {
		return cli.UsageError("sign: new-key: found "+cli.Quote(name)+", want the name of a file", "memhost sign new-key team")
	}
	private, public := name+".key", name+".pub"
	for _, path := range []string{private, public} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return abi.NewError(abi.CodeConflict, path+": is there already, and is not replaced")
		}
	}
	password, err := a.password("a password for " + private + ": ")
	if err != nil {
		return err
	}
	secret, open, id, err := signing.NewKey(password)
	if err != nil {
		return err
	}
	if err := wholefile.WriteDurable(private, secret, 0o600); err != nil {
		return cli.FileError(private, err)
	}
	if err := cli.ReplaceFile(public, open); err != nil {
		return err
	}
	if a.Out.JSON {
		return a.Out.Object(map[string]any{"private": private, "public": public, "id": id})
	}
	a.Out.Print("wrote %s and %s: %s\n", private, public, id)
	return nil
}
