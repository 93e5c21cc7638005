// Package picoclaw is memhost as a process hook of PicoClaw (github.com/sipeed/picoclaw).
//
// PicoClaw starts the hook as a child and speaks JSON-RPC 2.0 with it, one object per line on standard input and
// output; standard error goes into PicoClaw's log. Before each call of the model the hook adds the memory context to
// the end of the user's message, and after each turn it records the turn. If anything goes wrong with the memory the
// agent continues: without context, which is logged, and with the turn on disk until the slot accepts it.
//
// The protocol is that of PicoClaw's pkg/agent/hook_process.go and hooks.go, at commit cf67dd38. Each of its traps is
// described in the code that handles it.
//
// Reading order: hook.go (the process, line by line), wire.go (its messages), before.go (context before the model),
// inject.go (into the request), after.go (the turn as an event), people.go (who may use which memory), parent.go (the
// process that restarts the hook).
package picoclaw
