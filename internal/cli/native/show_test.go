package native

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
)

// shown returns what is printed of an answer, on standard output and as notes.
func shown(t *testing.T, show *abi.ShowDecl, answer string) (out, notes string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &commands{cli.New(cli.System{Stdout: &stdout, Stderr: &stderr})}
	c := &call{commands: a, kind: query, decl: abi.NativeDecl{Name: "x", Show: show}}
	require.NoError(t, c.show(abi.Raw(answer)))
	return stdout.String(), stderr.String()
}

func TestAnAnswerIsShownAsItIsDeclared(t *testing.T) {
	table := &abi.ShowDecl{As: abi.ShowTable, At: "/rows", Next: "/next", Below: []string{"/more"},
		Columns: []abi.ColumnDecl{{Title: "id", At: "/id", Cut: 3}, {Title: "now", At: "/now"}, {Title: "none", At: "/none"}}}
	out, notes := shown(t, table, `{"rows":[{"id":"abcdef","now":true,"more":["a",{"text":"b\nc"}]},{"id":"é\n語語","now":false}],"next":"z"}`)
	assert.Equal(t, "id    now  none\nabc   *\n    a\n    b\n    c\né 語\n", out)
	assert.Contains(t, notes, `there is more: --after "z"`)
	out, notes = shown(t, table, `{"rows":[]}`)
	assert.Empty(t, out)
	assert.Contains(t, notes, "there is nothing")
	out, _ = shown(t, &abi.ShowDecl{As: abi.ShowTable, Columns: table.Columns}, `{"id":"one"}`)
	assert.Equal(t, "id   now  none\none\n", out, "an object is one row")

	out, _ = shown(t, &abi.ShowDecl{As: abi.ShowText}, `"a\n\n"`)
	assert.Equal(t, "a\n", out)
	out, _ = shown(t, &abi.ShowDecl{As: abi.ShowList}, `{"a_b":12345678901234567890,"in":{"c":{"d":1}},"x":null}`)
	assert.Equal(t, "a b  12345678901234567890\nin, c, d  1\nx\n", out)

	for _, show := range []*abi.ShowDecl{nil, table, {As: abi.ShowText}, {As: abi.ShowList}, {As: abi.ShowFiles}, {As: "later"}} {
		out, _ = shown(t, show, `[7]`)
		assert.Equal(t, "[\n  7\n]\n", out, "another form than the declared one is JSON")
	}
}

func TestAnAnswerThatReportsAFailureEndsInOne(t *testing.T) {
	c := &call{decl: abi.NativeDecl{Failed: &abi.FailedDecl{Pointer: "/ok", Equals: abi.Raw(`false`)}}}
	for answer, fails := range map[string]bool{`{"ok":false}`: true, `{"ok":true}`: false, `{}`: false, `{"ok":null}`: false,
		`[]`: false, `x`: false} {
		assert.Equal(t, fails, c.verdict(abi.Raw(answer), nil) != nil, answer)
	}
}

// Flags of memhost's own take precedence over a module's, whatever a parameter is called.
func TestAModuleTakesNoNameOfMemhost(t *testing.T) {
	names := []string{"run", "user", "persona", "config", "json", "help", "params", "reason", "output", "server", "a_b", "a-b", "n"}
	d := &abi.NativeDecl{Name: "x", Schema: abi.Raw(`{"properties":{"` + strings.Join(names, `":{},"`) + `":{}}}`),
		Command: "grab [-o RUN] [-n N]"}
	a := &commands{cli.New(cli.System{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}})}
	as, err := d.ReadCommand()
	require.NoError(t, err)
	cmd := a.declaredCommand(mutation, d, "grab", as)
	for _, name := range []string{"run", "user", "config", "json", "help", "params", "reason", "output", "server"} {
		assert.NotNil(t, cmd.Flags().Lookup("param-"+name), name)
	}
	assert.NotNil(t, cmd.Flags().Lookup("persona"))
	assert.Equal(t, "output", cmd.Flags().ShorthandLookup("o").Name)
	assert.Equal(t, "n", cmd.Flags().ShorthandLookup("n").Name)

	root := &cobra.Command{Use: "memhost"}
	mine := &cobra.Command{Use: "export", Short: "mine"}
	own := &cobra.Command{Use: "group", Short: "mine"}
	root.AddCommand(mine, own)
	a.addCommands(root, &declarations{queries: []abi.NativeDecl{{Name: "a", Command: "export"}, {Name: "b", Command: "group x"},
		{Name: "c", Command: "new one"}, {Name: "d", Command: "new one"}, {Name: "e", Command: "BAD"}},
		mutations: []abi.NativeDecl{{Name: "f", Command: "new two"}, {Name: "g", Command: "alone"}}})
	assert.Equal(t, mine, child(root, "export"))
	assert.Empty(t, own.Commands())
	assert.Len(t, child(root, "new").Commands(), 2)
	assert.NotNil(t, child(root, "alone"))
}
