package main

import (
	"strconv"

	"github.com/memhost/memhost/abi/jsontext"

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
	search     bool // entries that share words with the query are shown, too
	maxEntries int64
	idleMS     int64 // 0: sessions are not archived for being idle
	soul       bool
	versions   bool
	dream      dreaming
}

// dreaming is the block dream.
type dreaming struct {
	on, twoPhase, afterSession bool
	skills                     bool // Dream may read and write skills/**
	intervalMS, batch, rounds  int64
	entryChars, fileChars      int
	model, instruction         string
	cron                       *schedule // instead of the interval
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, window: 100, tokens: nanobot.DefaultBudget(), maxHistory: 500, maxTokens: 8000, raw: true, maxEntries: 1000, soul: true, versions: true,
		dream: dreaming{on: true, intervalMS: 2 * 3600_000, batch: 20, rounds: 10, entryChars: 1000, fileChars: 8000}}
	var tail, after, idle jsontext.Raw
	var profile, onFailure, visibility, versioning, search string
	err := nanobot.DecodeFrom(jsontext.DecodeBytes(config.Config), append(s.tokens.Fields(), nanobot.Word("profile", &profile), nanobot.Word("update_policy", &s.policy),
		nanobot.Number("memory_window", &s.window), nanobot.Number("max_history_messages", &s.maxHistory), nanobot.Number("max_context_tokens", &s.maxTokens),
		nanobot.Word("on_failure", &onFailure), nanobot.Word("history_visibility", &visibility), nanobot.Number("max_history_entries", &s.maxEntries),
		nanobot.Flag("include_soul", &s.soul), nanobot.Word("versioning", &versioning), nanobot.Word("history_search", &search)),
		func(d *jsontext.Decoder, key string) (err error) {
			switch key {
			case "llm":
				s.llm, err = nanobot.ParseLLM(d, config.Secrets)
			case "include_tail":
				tail, err = d.RawAppend(nil)
			case "idle_archive_minutes":
				idle, err = d.RawAppend(nil)
			case "dream":
				after, err = s.dream.read(d)
			default:
				err = d.Skip()
			}
			return err
		})
	s.local, s.raw, s.ownHistory, s.versions, s.search = profile == "local", onFailure != "retry", visibility == "session", versioning != "off", search == "keyword"
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

func (b *dreaming) read(d *jsontext.Decoder) (after jsontext.Raw, err error) {
	mode, cron, hours, entry, file := "", "", 2.0, int64(b.entryChars), int64(b.fileChars)
	err = nanobot.DecodeFrom(d, []nanobot.Field{nanobot.Flag("enabled", &b.on), nanobot.Flag("allow_skills", &b.skills), nanobot.Word("mode", &mode), nanobot.Real("interval_h", &hours), nanobot.Word("cron", &cron),
		nanobot.Number("max_entries", &b.batch), nanobot.Number("entry_chars", &entry), nanobot.Number("file_chars", &file), nanobot.Number("max_iterations", &b.rounds),
		nanobot.Word("model", &b.model), nanobot.Word("instruction", &b.instruction)}, func(d *jsontext.Decoder, key string) error {
		raw, err := d.RawAppend(nil)
		if key == "after_session" {
			after = raw
		}
		return err
	})
	b.on, b.twoPhase, b.intervalMS = b.on && mode != "off", mode == "two_phase", int64(hours*3600_000)
	b.entryChars, b.fileChars = int(entry), int(file)
	if cron != "" && err == nil {
		var ok bool
		if b.cron, ok = parseSchedule(cron); !ok {
			err = abi.NewError(abi.CodeInvalidArgument, "dream.cron: want five fields: minute, hour, day of the month, month, day of the week")
		}
	}
	return after, err
}

func (s *settings) bySession() bool { return s.policy == nanobot.PolicySession }
