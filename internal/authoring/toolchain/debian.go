package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const (
	debianID      = "debian"
	debianRelease = "12"

	debianLibcFolder      = "/usr/lib/wasm32-wasi"
	debianCompilerRuntime = "/usr/lib/llvm-19/lib/clang/19/lib/wasi/libclang_rt.builtins-wasm32.a"
	debianWasmOpt         = "/usr/bin/wasm-opt"

	// llvmTag makes TinyGo link the LLVM that Debian packages.
	llvmTag = "llvm19"

	llvmPackage     = "llvm-19-dev"
	wasiLibcPackage = "wasi-libc"
	binaryenPackage = "binaryen"
)

// debianPackages are what TinyGo is built with and what modules are linked with.
func debianPackages() []string {
	return []string{
		"g++", llvmPackage, "libclang-19-dev", "liblld-19-dev", "lld-19", "clang-19",
		"libclang-rt-19-dev-wasm32", wasiLibcPackage, binaryenPackage,
	}
}

// checkPlatform refuses a machine for which there is no recipe.
func checkPlatform(golang goInstallation, osRelease string) error {
	id, release := parseOSRelease(osRelease)
	if golang.OS == "linux" && golang.Arch == "amd64" && id == debianID && release == debianRelease {
		return nil
	}
	system := strings.TrimSpace(id + " " + release)
	if system == "" {
		system = "an unknown system"
	}
	return fmt.Errorf("toolchain: this is %s on %s/%s, the toolchain for committed modules is made on Debian %s, "+
		"linux/amd64: "+
		"set TINYGO to a TinyGo of your own for development, and build modules to commit on such a machine or in CI",
		system, golang.OS, golang.Arch, debianRelease)
}

// parseOSRelease reads ID and VERSION_ID off /etc/os-release.
func parseOSRelease(text string) (id, release string) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(value, `"'`)
		switch name {
		case "ID":
			id = value
		case "VERSION_ID":
			release = value
		}
	}
	return id, release
}

// CanInstall reports whether Bootstrap may install Debian packages here.
func CanInstall() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && os.Geteuid() == 0
}

func installArguments(packages []string) []string {
	return append([]string{"install", "-y", "--no-install-recommends"}, packages...)
}

// installPackages installs Debian packages if it may.
func installPackages(ctx context.Context, packages []string, log io.Writer) error {
	if !CanInstall() {
		return fmt.Errorf("toolchain: Debian packages missing: %s; as root: apt-get update && apt-get %s",
			strings.Join(packages, " "), strings.Join(installArguments(packages), " "))
	}
	say(log, "installing Debian packages: %s", strings.Join(packages, " "))
	env := append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if _, err := run(ctx, "", env, "apt-get", "update"); err != nil {
		return err
	}
	_, err := run(ctx, "", env, "apt-get", installArguments(packages)...)
	return err
}

func installedPackages(ctx context.Context) (map[string]string, error) {
	args := append([]string{"-W", "-f", `${Package}\t${Version}\t${db:Status-Status}\n`}, debianPackages()...)
	out, err := run(ctx, "", os.Environ(), "dpkg-query", args...)
	// dpkg-query fails when one package is unknown to it, and lists the others.
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	return parsePackages(string(out)), nil
}

// parsePackages reads lines of name, version and status, and keeps what is installed.
func parsePackages(list string) map[string]string {
	out := make(map[string]string)
	for line := range strings.Lines(list) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 && f[2] == "installed" {
			out[f[0]] = f[1]
		}
	}
	return out
}

func missingPackages(have map[string]string) []string {
	return slices.DeleteFunc(debianPackages(), func(name string) bool { return have[name] != "" })
}

// upstream drops epoch and Debian revision: 1:19.1.7-3~deb12u1 is 19.1.7.
func upstream(version string) string {
	if _, after, ok := strings.Cut(version, ":"); ok {
		version = after
	}
	if i := strings.LastIndexByte(version, '-'); i >= 0 {
		version = version[:i]
	}
	return version
}
