package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// fault is what is done wrong, at the clause in whose group it stands.
type fault string

const (
	none fault = ""

	committedEarly fault = "committed_early" // 1: what is queued is called committed

	sessionBound fault = "session_bound" // 2: finds only what the same session said

	naiveScope  fault = "naive_scope"  // 3: native ids are joined with a separator that ids may hold, and sanitised
	foldsCase   fault = "folds_case"   // 3: upper and lower case of an id are one
	noNamespace fault = "no_namespace" // 3: installations that share a backend share scopes

	writesInReads fault = "writes_in_reads" // 4: retrieve writes, by a route that the manifest calls read

	ignoresBudget  fault = "ignores_budget"  // 5: says what it sent, and sends something else
	overflows      fault = "overflows"       // 5: does not fit the text
	unescaped      fault = "unescaped"       // 5: lets a text close the element
	unstableFormat fault = "unstable_format" // 5: formats the same result in another way
	showsIDs       fault = "shows_ids"       // 5: the id of an event is in the context
	shownElsewhere fault = "shown_elsewhere" // 5: says that a text is shown where it is not
	fewItems       fault = "few_items"       // 5: asks for 20 items whatever max_tokens is, and does not say so

	resetTooMuch   fault = "reset_too_much"   // 6: resets every scope of the run
	resetTooLittle fault = "reset_too_little" // 6: says done, and removes nothing
	noGeneration   fault = "no_generation"    // 6: later generations share a native id

	swallowsErrors fault = "swallows_errors" // 7: an error is an empty result
	trapsOnErrors  fault = "traps"           // 7: panics at an error
	hidesNative    fault = "hides_native"    // 7: keeps the backend's words to itself
	noRetryAfter   fault = "no_retry_after"  // 7: drops Retry-After
	untyped        fault = "untyped"         // 7: every error is internal

	inventsScores fault = "invents_scores" // 8: scores that the backend did not give
	rewritesRaw   fault = "rewrites_raw"   // 8: raw is a tidied copy

	dropsLabels  fault = "drops_labels"  // 9: says hard, and sends no label
	silentLabels fault = "silent_labels" // 9: does not say what became of labels

	setupErases fault = "setup_erases" // 10: set-up erases the scope of a read-only session

	queryWrites fault = "query_writes" // 11: a native query writes, by a route that the manifest calls read

	deniesEvents fault = "denies_events" // 12: find_event never finds
	unsureEvents fault = "unsure_events" // none: find_event never knows, and says so

	sharedCache fault = "shared_cache" // 13: answers are cached in a global without the scope
	reorders    fault = "reorders"     // 13: sends a batch backwards

	badPointers    fault = "bad_pointers"    // 14: evidence points beside
	nameless       fault = "nameless"        // 14: does not say which backend speaks
	newWords       fault = "new_words"       // 14: a result state that the contract does not have
	negativeCounts fault = "negative_counts" // 14: retrieved_count is below 0
	ranksFromZero  fault = "ranks_from_zero" // 14: the first rank is 0
	newStatus      fault = "new_status"      // 14: a write status that the contract does not have

	forgetsNothing fault = "forgets_nothing"  // 15: says done, and removes nothing
	forgetsTooMuch fault = "forgets_too_much" // 15: removes other events of the scope too
	forgetsOnce    fault = "forgets_once"     // 15: forgetting what is gone is an error
)

// settings is the config block.
type settings struct {
	provider string
	space    string // the operator's namespace
	kind     abi.ConditionKind
	frame    abi.Frame
	fault    fault
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{provider: config.Provider, space: config.Namespace, kind: config.Kind, frame: config.Frame}
	err := wirejson.DecodeBytes(config.Config).Obj(func(d *wirejson.Decoder, key string) error {
		if key != "fault" {
			return d.Skip()
		}
		text, err := d.Str()
		s.fault = fault(text)
		return err
	})
	if s.fault == noNamespace {
		s.space = ""
	}
	return s, err
}
