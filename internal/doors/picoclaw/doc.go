// Package picoclaw is memhost as a process hook of PicoClaw (github.com/sipeed/picoclaw).
//
// PicoClaw starts the hook as a child and speaks JSON-RPC 2.0 with it, one object a line on standard input and output;
// what the hook says on standard error goes into PicoClaw's log. Before each call of the model the hook adds the memory
// context to the end of the user's message, and after each turn it records the turn. Whatever goes wrong with the
// memory, the agent goes on: without context, which the log says, and with the turn kept on disk until the slot takes
// it.
//
// The protocol is that of PicoClaw's pkg/agent/hook_process.go and hooks.go, at commit cf67dd38. Each of its traps is
// described where the code deals with it.
//
// Reading order: hook.go (the process, line by line), wire.go (its messages), before.go (context before the model),
// inject.go (into the request), after.go (the turn as an event), people.go (who may use which memory), parent.go (the
// process that starts the hook again).
package picoclaw
