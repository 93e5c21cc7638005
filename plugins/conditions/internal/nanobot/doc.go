// Package nanobot is what the memories modelled on Nanobot's own share: the session files with their pointers, when a
// model is asked to work them off, what is done to messages before a model or a person sees them, and the operations
// that serve all this (Plugin).
//
// It runs inside a guest. What it keeps is in the scope's state:
//
//	messages/<session>   log; one message an entry, as a line of Nanobot's session files
//	head/<session>       what recording keeps of a session: how many messages it has, and whether work waits
//	mark/<session>       what the work keeps: how far it has come, and how it failed last
//	event/<event id>     which messages an event became
//	scope                the last session, and a counter of arrivals
//	usage                calls to the model, tokens, failures
//
// Head and mark are two keys, so that a recording and the work that waits for a model never write the same one.
package nanobot
