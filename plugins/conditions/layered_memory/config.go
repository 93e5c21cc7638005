package main

import (
	"strconv"

	"github.com/go-faster/jx"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// settings is the config block.
type settings struct {
	config     *abi.GuestConfig
	llm        nanobot.LLM
	local      bool
	policy     string
	window     int64
	tokens     nanobot.TokenBudget
	tail       bool
	maxHistory int64
	maxTokens  int64
	// raw: what the model could not archive goes into the history as it is.
	raw        bool
	ownHistory bool // recent history of the request's session only
	maxEntries int64
	idleMS     int64 // 0: sessions are not archived for being idle
	soul       bool
	versions   bool
	dream      dreaming
}

// dreaming is the block dream.
type dreaming struct {
	on, twoPhase, afterSession bool
	intervalMS, batch, rounds  int64
	entryChars, fileChars      int
	model, instruction         string
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, window: 100, tokens: nanobot.DefaultBudget(), maxHistory: 500, maxTokens: 8000, raw: true, maxEntries: 1000, soul: true, versions: true,
		dream: dreaming{on: true, intervalMS: 2 * 3600_000, batch: 20, rounds: 10, entryChars: 1000, fileChars: 8000}}
	var tail, after, idle jx.Raw
	err := jx.DecodeBytes(config.Config).Obj(func(d *jx.Decoder, key string) (err error) {
		if d.Next() == jx.Null {
			return d.Null()
		}
		word := func() (text string) {
			if err == nil {
				text, err = d.Str()
			}
			return text
		}
		switch key {
		case "llm":
			s.llm, err = nanobot.ParseLLM(d, config.Secrets)
		case "profile":
			s.local = word() == "local"
		case "update_policy":
			s.policy = word()
		case "memory_window":
			s.window, err = d.Int64()
		case "include_tail":
			tail, err = d.RawAppend(nil)
		case "max_history_messages":
			s.maxHistory, err = d.Int64()
		case "max_context_tokens":
			s.maxTokens, err = d.Int64()
		case "on_failure":
			s.raw = word() == "raw"
		case "history_visibility":
			s.ownHistory = word() == "session"
		case "max_history_entries":
			s.maxEntries, err = d.Int64()
		case "idle_archive_minutes":
			idle, err = d.RawAppend(nil)
		case "include_soul":
			s.soul, err = d.Bool()
		case "versioning":
			s.versions = word() == "snapshot"
		case "dream":
			after, err = s.dream.read(d)
		default:
			err = s.tokens.Read(d, key)
		}
		return err
	})
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of layered_memory: "+err.Error())
	}
	if s.policy == "" {
		s.policy = nanobot.PolicySession
		if s.local {
			s.policy = nanobot.PolicyTokens
		}
	}
	s.tail = string(tail) == "true" || tail == nil && s.local
	s.dream.afterSession = string(after) == "true" || after == nil && !s.local
	minutes, _ := strconv.ParseInt(string(idle), 10, 64)
	if idle == nil && s.local {
		minutes = 15
	}
	s.idleMS = minutes * 60_000
	return s, nil
}

func (b *dreaming) read(d *jx.Decoder) (after jx.Raw, err error) {
	err = d.Obj(func(d *jx.Decoder, key string) (err error) {
		if d.Next() == jx.Null {
			return d.Null()
		}
		switch key {
		case "enabled":
			var on bool
			on, err = d.Bool()
			b.on = b.on && on
		case "mode":
			var mode string
			mode, err = d.Str()
			b.on, b.twoPhase = b.on && mode != "off", mode == "two_phase"
		case "interval_h":
			var hours float64
			hours, err = d.Float64()
			b.intervalMS = int64(hours * 3600_000)
		case "after_session":
			after, err = d.RawAppend(nil)
		case "max_entries":
			b.batch, err = d.Int64()
		case "entry_chars":
			b.entryChars, err = d.Int()
		case "file_chars":
			b.fileChars, err = d.Int()
		case "max_iterations":
			b.rounds, err = d.Int64()
		case "model":
			b.model, err = d.Str()
		case "instruction":
			b.instruction, err = d.Str()
		default:
			err = d.Skip()
		}
		return err
	})
	return after, err
}

func (s *settings) bySession() bool { return s.policy == nanobot.PolicySession }
