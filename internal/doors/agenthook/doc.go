// Package agenthook is memhost as the command hooks of Claude Code and of Codex.
//
// Both agents start a short process for each event, write one JSON object to its standard input and read one from its
// standard output:
//
//	UserPromptSubmit  the prompt is kept on disk; the context for it is the answer's additionalContext
//	SessionStart      context for the project; after a compaction, for the last prompt
//	Stop              the prompts kept since the last Stop and last_assistant_message become one event of the outbox
//	SessionEnd        prompts that never got an answer become an event of their own
//	PreCompact        nothing is lost by a compaction: what waits is delivered
//
// The answer is taken from last_assistant_message, not from the transcript: the transcript is one message late.
//
// The agent is never blocked. A hook ends within its deadline, and its process with exit code 0 and no decision. What
// goes wrong is a "systemMessage" in the answer, which the agent shows to its user.
//
// The fields are those of Codex' codex-rs/hooks/schema/generated (commit bde5e187) and of Claude Code's hooks
// reference, 2.1.145 and later.
//
// Reading order: payload.go (what agents say), hook.go (one event), session.go (prompts between two processes),
// project.go (whose memory), settings.go (the agents' settings files).
package agenthook
