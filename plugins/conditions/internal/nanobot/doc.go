// Package nanobot has what the memories modelled on Nanobot's own memory share: the session files with their pointers,
// the policy for when a model processes them, how messages are formatted for a model or a person, and the operations
// that serve all this (Plugin).
//
// It runs inside a guest. It keeps in the scope's state:
//
//	messages/<session>   log; one entry per message, as a line of Nanobot's session files
//	head/<session>       written by recording: how many messages the session has, and whether work is due
//	mark/<session>       written by the work: how far it has come, and its last failure
//	event/<event id>     which messages an event became
//	scope                the last session, and a counter of arrivals
//	usage                calls to the model, tokens, failures
//
// Head and mark are two keys, so that a recording and the work, which may be waiting for a model, never write the same
// key.
package nanobot
