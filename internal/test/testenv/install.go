package testenv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// installed gives the folder Cache/<name>-<hash of recipe>, filled by fill on the first use. Other processes wait
// until it is filled. What a failed fill left is removed before the next.
func (e *Env) installed(name, recipe string, fill func(dir string) error) (string, error) {
	sum := sha256.Sum256([]byte(recipe))
	dir := filepath.Join(e.Cache, name+"-"+hex.EncodeToString(sum[:6]))
	done := filepath.Join(dir, ".complete")
	if _, err := os.Stat(done); err == nil {
		return dir, nil
	}
	gate, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer gate.Close()
	if err := lock(gate); err != nil {
		return "", err
	}
	if _, err := os.Stat(done); err == nil {
		return dir, nil
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return "", err
	}
	if err := fill(dir); err != nil {
		return "", fmt.Errorf("install %s into %s: %w", name, dir, err)
	}
	return dir, os.WriteFile(done, []byte(recipe), 0o644)
}

// tool finds a program, or installs the Debian packages that contain it, if this process may. The error names program
// and packages.
func (e *Env) tool(ctx context.Context, program string, packages ...string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	missing := fmt.Errorf("%s is missing: install %s (Debian, Ubuntu: apt-get install %s)", program,
		strings.Join(packages, " "), strings.Join(packages, " "))
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return "", missing
	}
	e.say("%s is missing: apt-get install %s", program, strings.Join(packages, " "))
	if err := e.aptUpdate(ctx); err != nil {
		return "", errors.Join(missing, err)
	}
	args := append([]string{"apt-get", "install", "-yq", "--no-install-recommends"}, packages...)
	if err := e.run(ctx, command{name: "apt", args: args,
		env: []string{"DEBIAN_FRONTEND=noninteractive"}}); err != nil {
		return "", errors.Join(missing, err)
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return "", missing
	}
	return path, nil
}

// aptUpdate fetches the package lists, once per run of this program and only when it is needed.
func (e *Env) aptUpdate(ctx context.Context) error {
	return e.run(ctx, command{name: "apt", args: []string{"apt-get", "update", "-q"}})
}

// debian unpacks Debian packages with what they need into a folder of the cache, and installs nothing into the system.
// The folder is like a root.
func (e *Env) debian(ctx context.Context, name string, packages ...string) (string, error) {
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%s is missing: Debian's packages %s cannot be fetched; on another system put "+
				"their programs into PATH", program, strings.Join(packages, " "))
		}
	}
	return e.installed(name, strings.Join(packages, " "), func(dir string) error {
		e.say("fetch Debian's %s into %s", strings.Join(packages, ", "), dir)
		archives := filepath.Join(dir, "archives")
		if err := os.MkdirAll(filepath.Join(archives, "partial"), 0o755); err != nil {
			return err
		}
		download := append([]string{"apt-get", "install", "-yq", "--download-only", "--no-install-recommends", "-o",
			"Dir::Cache::archives=" + archives, "-o", "Debug::NoLocking=1"}, packages...)
		if err := e.run(ctx, command{name: "apt", args: download}); err != nil {
			if os.Geteuid() != 0 {
				return fmt.Errorf("%w\n(package lists may be missing: apt-get update)", err)
			}
			if err := e.aptUpdate(ctx); err != nil {
				return err
			}
			if err := e.run(ctx, command{name: "apt", args: download}); err != nil {
				return err
			}
		}
		debs, err := filepath.Glob(filepath.Join(archives, "*.deb"))
		if err != nil || len(debs) == 0 {
			return fmt.Errorf("apt-get fetched nothing for %s: are they installed already?",
				strings.Join(packages, " "))
		}
		for _, deb := range debs {
			if err := e.run(ctx, command{name: "apt", args: []string{"dpkg-deb", "-x", deb, dir}}); err != nil {
				return err
			}
		}
		return os.RemoveAll(archives)
	})
}
