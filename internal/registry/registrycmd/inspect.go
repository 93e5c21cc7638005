package registrycmd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/schema"
	"github.com/memhost/memhost/internal/declared"
)

const inspectHelp = `Shows what a module is and what it may do, read off its bytes; nothing of it is run. FILE has a slash in it or ends in .wasm; NAME is a
built-in module, or a provider that one serves; oci://... is a module in a registry, with its signatures and the reports of the conformance kit that are
attached to it. A signature is checked with the lines of modules.trust; a report says what its author says.`

func (a *commands) inspectCommand() *cobra.Command {
	return &cobra.Command{
		Use: "inspect FILE|NAME|oci://...", Short: "Show a module's powers, routes, exports and schema", Long: inspectHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.OpenModule(args[0], cli.IsFile(args[0]))
			if err != nil {
				return err
			}
			return a.inspect(cmd.Context(), m)
		},
	}
}

// moduleInfo describes a module, for --json.
type moduleInfo struct {
	Source       string         `json:"source"`
	SHA256       string         `json:"sha256"`
	Bytes        int64          `json:"bytes"`
	Powers       []string       `json:"powers"`
	Imports      []string       `json:"imports"`
	Operations   []string       `json:"operations"`
	Capabilities []string       `json:"capabilities"`
	MemoryBytes  int64          `json:"memory_bytes"`
	Sections     map[string]int `json:"custom_sections"`
	Engine       string         `json:"engine"`
	Warnings     []string       `json:"warnings"`
	Manifest     abi.Raw        `json:"manifest"`
	// Attached has the signatures and reports of a module in a registry.
	Attached *attachments `json:"attached,omitempty"`
}

const pageBytes = 64 << 10

func (a *commands) inspect(ctx context.Context, named *cli.Module) error {
	m, source := named.Info, named.Source
	engine, warnings := host.EngineOf(m, named.Wasm)
	attached, err := a.attachments(ctx, named)
	if err != nil {
		return err
	}
	warnings = append(slices.Clone(warnings), m.Manifest.Warnings()...)
	if w := m.SettleWarning(); w != "" {
		warnings = append(warnings, w)
	}
	info := moduleInfo{Source: source, SHA256: m.SHA256, Bytes: m.Bytes, Powers: cli.Powers(m.Powers), Imports: m.Powers,
		Operations:   m.Exports,
		Capabilities: cli.Optional(m.Exports), MemoryBytes: int64(m.MemoryPages) * pageBytes, Sections: m.Customs, Engine: engine,
		Warnings: append([]string{}, warnings...), Manifest: abi.Marshal(m.Manifest), Attached: attached}
	if a.Out.JSON {
		return a.Out.Object(info)
	}
	o, f := a.Out, m.Manifest
	o.Print("%s %s  %s\n", f.Name, cli.InALine(f.Version), cli.InALine(f.Description))
	if f.Homepage != "" {
		o.Print("%s\n", cli.InALine(f.Homepage))
	}
	w := tabwriter.NewWriter(o.Stdout, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { // most of the values were written by the module's author
		fmt.Fprintf(w, "%s\t%s\n", name, cli.InALine(fmt.Sprintf(format, args...)))
	}
	row("source", "%s", cli.SourceText(source))
	row("sha256", "%s", m.SHA256)
	for _, line := range attached.lines() {
		row(line[0], "%s", line[1])
	}
	row("size", "%s, of it %s", cli.Size(m.Bytes), sectionSizes(m.Customs))
	row("abi", "%s", f.ABI)
	row("engine", "%s", engine)
	for _, warning := range warnings {
		row("warning", "%s", warning)
	}
	if deadline, settle, writes := m.Settling(); writes {
		row("a record", "may take %d ms, and arrive until %d ms after it was sent", deadline, settle)
	}
	row("memory", "%s at the start", cli.Size(info.MemoryBytes))
	row("powers", "%s", orNone(info.Powers))
	row("imports", "%s", orNone(m.Powers))
	row("capabilities", "%s", orNone(info.Capabilities))
	for _, q := range f.NativeQueries {
		row("native query", "%s", nativeText(q))
	}
	for _, m := range f.NativeMutations {
		row("native mutation", "%s", nativeText(m))
	}
	for _, c := range f.ModelCalls {
		row("model calls", "%s, %s: %s.%s", c.Operation, c.Model, c.About, onlyWith(c.Pointer, c.Equals))
	}
	for _, p := range f.Providers {
		note := ""
		if p.Note != "" {
			note = ": " + p.Note
		}
		row("provider", "%s (%s)%s", p.Name, p.Kind, note)
	}
	for _, g := range f.Origins {
		row("origin", "%s, %s, its URL from %s", g.Name, g.Protocol, g.From)
	}
	for _, s := range f.Secrets {
		row("secret", "%s, named at %s, into the headers %s, for origin %s", s.Name, s.From, strings.Join(s.Headers, ", "),
			s.Origin)
	}
	for _, b := range f.Background {
		row("background", "%s every %d ms, class %s", b.Export, b.IntervalMS, b.Class)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := a.showRoutes(f); err != nil {
		return err
	}
	return a.showSchema(f)
}

// nativeText describes a native query or mutation in one line.
func nativeText(n abi.NativeDecl) string {
	text := n.Name
	if params := declared.ParamList(&n); params != "" {
		text += " (" + params + ")"
	}
	if n.About != "" {
		text += ": " + n.About
	}
	return text + onlyWith(n.Pointer, n.Equals)
}

// onlyWith names the setting with which a declaration counts; "" if it always counts.
func onlyWith(pointer string, equals abi.Raw) string {
	switch {
	case len(equals) > 0:
		return " Only with " + strings.TrimPrefix(pointer, "/") + ": " + string(equals)
	case pointer != "":
		return " Only with " + strings.TrimPrefix(pointer, "/")
	}
	return ""
}

func (a *commands) showRoutes(f *abi.ModuleManifest) error {
	if len(f.Routes) == 0 {
		return nil
	}
	a.Out.Print("\nroutes: all that the module can send\n")
	w := tabwriter.NewWriter(a.Out.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range f.Routes {
		what := r.Method + " " + r.Path
		if r.Statement != "" {
			what = strings.Join(strings.Fields(r.Statement), " ")
		}
		for _, at := range slices.Sorted(maps.Keys(r.Match)) {
			what += fmt.Sprintf("  [%s = %s]", at, r.Match[at])
		}
		if r.Statement == "" {
			what += settable("headers", r.Headers, "the fixed set") + settable("query", r.Query, "any")
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", r.Class, cli.InALine(r.Name), cli.InALine(r.Origin), cli.InALine(what))
	}
	return w.Flush()
}

// settable describes the headers or query keys that a module may set on a route; empty if there are none.
func settable(what string, list []string, unlisted string) string {
	switch {
	case list == nil:
		return "  " + what + ": " + unlisted
	case len(list) == 0:
		return ""
	}
	return "  " + what + ": " + strings.Join(list, ", ")
}

func (a *commands) showSchema(f *abi.ModuleManifest) error {
	s, err := schema.Compile(f.ConfigSchema)
	if err != nil {
		return err
	}
	fields := s.Fields()
	if len(fields) == 0 {
		return nil
	}
	a.Out.Print("\nconfiguration block\n")
	w := tabwriter.NewWriter(a.Out.Stdout, 0, 0, 2, ' ', 0)
	var show func(fields []schema.Field, indent string)
	show = func(fields []schema.Field, indent string) {
		for _, field := range fields {
			state := "default " + string(field.Default)
			switch {
			case field.Required:
				state = "required"
			case field.Default == nil:
				state = "optional"
			}
			fmt.Fprintf(w, "  %s%s\t%s\t%s\t%s\n", indent, cli.InALine(field.Name), cli.InALine(field.Wants),
				cli.InALine(cli.Cut(state, 60)), cli.InALine(field.Description))
			show(field.Fields, indent+"  ")
		}
	}
	show(fields, "")
	return w.Flush()
}

func sectionSizes(customs map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(customs)) {
		parts = append(parts, fmt.Sprintf("%s %s", name, cli.Size(int64(customs[name]))))
	}
	return strings.Join(parts, ", ")
}

func orNone(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}
