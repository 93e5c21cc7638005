// Package agents tests the command hooks with the real Claude Code and the real Codex, and the plugins for OpenClaw
// and OpenCode with these programs, all as npm has them, and a stub model.
//
//	tools/live agents
//
// It is no part of the whole check: the programs come from npm (1.9 GB, once, into the cache folder of testenv), and
// Claude Code's licence does not let others pass it on. All processes run in a network namespace that has the loopback
// device alone, with a home folder and an environment of their own, so nothing leaves this machine and no account is
// needed. Linux with unshare and ip is wanted.
package agents
