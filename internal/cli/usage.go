package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/memhost/memhost/abi"
)

// WrapUsage turns the errors of cobra's and pflag's own checks into usage errors in plain words: an unknown flag
// suggests the nearest known one, and a wrong value is told apart from a right one.
func WrapUsage(cmd *cobra.Command, err error) error {
	var ready *abi.Error
	var done *DoneError
	switch {
	case errors.As(err, &ready):
		return ready
	case errors.As(err, &done):
		return done
	}
	hint := "`" + cmd.CommandPath() + " --help` shows what it takes"
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if !cmd.HasParent() {
			if err := NoSuchCommand(cmd, cmd.Flags().Args()); err != nil {
				return err // the command that the flag belongs to
			}
		}
		return unknownFlag(cmd, unknown, hint)
	}
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		if wants := wantsOf(value.GetFlag()); wants != "" {
			return UsageError(fmt.Sprintf("--%s: found %s, want %s", value.GetFlag().Name, Quote(value.GetValue()),
				wants), hint)
		}
	}
	text := err.Error()
	if strings.HasPrefix(text, "accepts ") || strings.HasPrefix(text, "requires at least ") {
		_, takes, _ := strings.Cut(cmd.Use, " ")
		return UsageError(fmt.Sprintf("%s: %s; it takes %s", cmd.Name(), argumentsFound(cmd.Flags().NArg()), takes),
			hint)
	}
	if strings.HasPrefix(text, "unknown command ") { // cobra's error for an argument of a command that takes none
		return UsageError(cmd.Name()+": "+argumentsFound(cmd.Flags().NArg())+"; it takes none", hint)
	}
	return UsageError(text, hint)
}

func argumentsFound(n int) string {
	if n == 0 {
		return "an argument is missing"
	}
	return "found " + Count(n, "argument")
}

// unknownFlag suggests flags that are similar to an unknown one. A flag with a single dash usually needs two.
func unknownFlag(cmd *cobra.Command, e *pflag.NotExistError, hint string) error {
	name, written := e.GetSpecifiedName(), "--"+e.GetSpecifiedName()
	if letters := e.GetSpecifiedShortnames(); letters != "" {
		name, written = letters, "-"+letters
	}
	name, _, _ = strings.Cut(name, "=")
	written, _, _ = strings.Cut(written, "=")
	var known []string
	add := func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	}
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	user := cmd.Flags().Lookup("persona")
	if user != nil && user.Name == "user" { // another name for it
		known = append(known, "persona")
	}
	if near := abi.Nearest(name, known); near != "" && len(name) > 1 {
		if near == "persona" {
			near = user.Name
		}
		hint = "did you mean --" + near + "? " + hint
	}
	return UsageError("no flag is called "+written, hint)
}

// wantsOf describes the values that a flag takes, "" if its own error does.
func wantsOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "int", "int64", "int32", "uint", "uint64":
		return "a whole number"
	case "intSlice", "int64Slice":
		return "whole numbers, as 1,2,7"
	case "float64":
		return "a number"
	case "duration":
		return "a time with its unit, as 500ms, 30s or 5m"
	}
	return ""
}
