package agenthook

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/outbox"
	"github.com/memhost/memhost/internal/doors/places"
)

// Placeholders in --run, --user and --agent that a hook replaces.
const (
	PlaceProject = "{project}"
	PlacePerson  = "{person}"
)

// CheckPlaces rejects a scope with placeholders that Expand does not replace.
//
// Errors: invalid_argument.
func CheckPlaces(scope abi.MemoryScope) error { return places.Check(scope, PlaceProject, PlacePerson) }

// Expand replaces the placeholders in the ids of a scope by project and person.
func Expand(scope abi.MemoryScope, project, person string) abi.MemoryScope {
	r := strings.NewReplacer(PlaceProject, project, PlacePerson, person)
	scope.RunID, scope.PersonaID, scope.AgentID = r.Replace(scope.RunID), r.Replace(scope.PersonaID),
		r.Replace(scope.AgentID)
	return scope
}

// Project names the project that a folder belongs to: the base name of its root and eight digits of the root's path, as
// in "memhost-1f0a9c3e". The root is the nearest parent folder with .git; all work trees of a repository are one
// project. A folder outside any repository is a project of its own.
func Project(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	root := projectRoot(dir)
	return filepath.Base(root) + "-" + outbox.Digest(root)[:8]
}

func projectRoot(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		git := filepath.Join(at, ".git")
		info, err := os.Stat(git)
		switch {
		case err == nil && info.IsDir():
			return at
		case err == nil:
			return mainWorkTree(git, at)
		case filepath.Dir(at) == at:
			return dir
		}
	}
}

// mainWorkTree returns the root of the repository that a work tree belongs to. The tree's .git is a file:
//
//	gitdir: /home/ann/memhost/.git/worktrees/fix
//
// A submodule's file names .git/modules/NAME instead; a submodule is a project of its own.
func mainWorkTree(file, tree string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return tree
	}
	dir := filepath.FromSlash(strings.TrimSpace(strings.TrimPrefix(string(text), "gitdir:")))
	if !filepath.IsAbs(dir) { // worktree.useRelativePaths
		dir = filepath.Join(tree, dir)
	}
	if root, _, found := strings.Cut(filepath.ToSlash(dir), "/.git/worktrees/"); found {
		return filepath.FromSlash(root)
	}
	return tree
}
