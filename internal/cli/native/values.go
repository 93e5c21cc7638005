package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/declared"
)

// value is a flag for a parameter. Its text becomes JSON of the parameter's kind.
type value struct {
	kind declared.Kind
	text string
	list []string
	raw  abi.Raw
}

// String implements pflag.Value.
func (v *value) String() string { return v.text }

// Type implements pflag.Value.
func (v *value) Type() string {
	switch v.kind {
	case declared.KindText:
		return "string"
	case declared.KindInteger:
		return "int"
	case declared.KindNumber:
		return "float64"
	case declared.KindBoolean:
		return "bool"
	case declared.KindTexts:
		return "stringArray"
	}
	return string(v.kind)
}

// Set implements pflag.Value.
func (v *value) Set(text string) error {
	v.text = text
	isJSON := abi.ValidJSON([]byte(text))
	switch v.kind {
	case declared.KindText:
		v.raw = quoted(text)
	case declared.KindInteger:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errors.New("want a whole number")
		}
		v.raw = strconv.AppendInt(nil, n, 10)
	case declared.KindNumber:
		if _, err := strconv.ParseFloat(text, 64); err != nil || !isJSON {
			return errors.New("want a number")
		}
		v.raw = abi.Raw(text)
	case declared.KindBoolean:
		on, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("want true or false")
		}
		v.raw = strconv.AppendBool(nil, on)
	case declared.KindTexts:
		v.list = append(v.list, text)
		v.raw, _ = json.Marshal(v.list) // of strings
	default:
		if v.raw = abi.Raw(text); !isJSON {
			if v.kind == declared.KindJSON {
				return errors.New("want JSON")
			}
			v.raw = quoted(text)
		}
	}
	return nil
}

func quoted(s string) abi.Raw {
	text, _ := json.Marshal(s) // a string is always JSON
	return text
}

// addFlags adds the flags that every query and mutation has.
func (c *call) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	c.scope.Add(f)
	if slices.ContainsFunc(declared.Params(&c.decl), func(p declared.Param) bool { return p.Name == "persona" }) {
		f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName { return pflag.NormalizedName(name) })
	}
	f.StringVar(&c.params, "params", "", "the parameters, a JSON object")
	if c.kind == mutation {
		f.StringVar(&c.reason, "reason", "", "why, for the provider's records")
	}
	f.StringVarP(&c.output, "output", "o", "", "a file for the answer, instead of standard output")
	if c.decl.Show != nil && len(c.decl.Show.Below) > 0 {
		f.BoolVar(&c.oneline, "oneline", false, "a line for each, without what is below it")
	}
}

// addParams adds flags for the parameters that are not positional. A flag of memhost's own takes precedence: a
// parameter of the same name becomes param-NAME.
func (c *call) addParams(cmd *cobra.Command, as *abi.NativeCommand) {
	c.values = map[string]*value{}
	f := cmd.Flags()
	taken := func(name string) bool {
		return f.Lookup(name) != nil || name == "help" || slices.Contains(global, name)
	}
	for _, p := range declared.Params(&c.decl) {
		if slices.ContainsFunc(as.Args, func(a abi.NativeArg) bool { return a.Param == p.Name }) {
			continue
		}
		name, short := strings.ReplaceAll(p.Name, "_", "-"), ""
		for flag, param := range as.Flags {
			switch plain := strings.TrimLeft(flag, "-"); {
			case param != p.Name:
			case len(plain) == 1:
				short = plain
			default:
				name = plain
			}
		}
		if taken(name) {
			name = "param-" + name
		}
		if short != "" && f.ShorthandLookup(short) != nil || taken(name) {
			short = ""
		}
		if taken(name) { // two parameters whose names differ only in _ and -
			continue
		}
		v := &value{kind: p.Kind}
		c.values[p.Name] = v
		flag := f.VarPF(v, name, short, usage(&p))
		if p.Kind == declared.KindBoolean {
			flag.NoOptDefVal = "true"
		}
		if len(p.Choices) > 0 {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(p.Choices, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// global are flags of every command.
var global = []string{"json", "server", "config", "data", "set", "log-level", "log-format"}

// usage is the help of a parameter's flag.
func usage(p *declared.Param) string {
	text := strings.TrimRight(p.About, ".")
	if len(p.Choices) > 0 {
		text = strings.TrimLeft(text+"; ", "; ") + "one of " + strings.Join(p.Choices, ", ")
	}
	if p.Required {
		text = fmt.Sprintf("%s (required)", text)
	}
	return cli.InALine(strings.ReplaceAll(strings.TrimSpace(text), "`", "'"))
}
