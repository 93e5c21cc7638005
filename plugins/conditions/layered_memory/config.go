package main

import (
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// settings is the config block.
type settings struct {
	nanobot.Settings
	// raw: messages that the model could not archive are copied into the history.
	raw                bool
	sessionHistoryOnly bool // show recent history of the request's session only
	maxEntries         int64
	idleMS             int64 // 0: idle sessions are not archived
	soul               bool
	versions           bool
	prompts            *promptSet
	dream              dreamConfig
}

// dreamConfig is the config block dream.
type dreamConfig struct {
	on, twoPhase, afterSession bool
	skills                     bool // Dream may read and write skills/**
	intervalMS, batch, rounds  int64
	entryChars, fileChars      int64
	keepRuns                   int64 // number of runs that are kept
	model, instruction         string
	// scheduled: interval_h or cron is configured.
	scheduled bool
	cron      *schedule // instead of the interval
}

func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{raw: true, maxEntries: 1000, soul: true, versions: true,
		dream: dreamConfig{on: true, intervalMS: 2 * 3600_000, batch: 20, rounds: 10, entryChars: 1000, fileChars: 8000,
			keepRuns: 10}}
	var after, idle abi.Raw
	var onFailure, visibility, versioning, prompts string
	dream := func(d *wirejson.Decoder, name string) (err error) {
		if name != "dream" {
			return d.Skip()
		}
		after, err = s.dream.read(d)
		return err
	}
	var err error
	s.Settings, err = nanobot.ParseSettings(config, model.PolicyTokens, dream, object.Optional("on_failure", &onFailure),
		object.Optional("history_visibility", &visibility), object.Optional("max_history_entries",
			&s.maxEntries), object.Optional("include_soul", &s.soul),
		object.Optional("versioning", &versioning), object.Optional("idle_archive_minutes", &idle),
		object.Optional("prompts", &prompts))
	s.raw, s.sessionHistoryOnly, s.versions = onFailure != "retry", visibility == "session", versioning != "off"
	// A configured schedule also applies under the profile control.
	s.dream.afterSession = string(after) == "true" || after == nil && !s.Local && !s.dream.scheduled
	if err == nil && string(after) == "true" && s.dream.scheduled {
		err = abi.NewError(abi.CodeInvalidArgument, "dream.after_session: Dream runs behind every archive, which leaves "+
			"nothing to dream.interval_h and dream.cron: remove it, or them")
	}
	if prompts == "" && config.Profile == abi.ProfileSourceDesign {
		prompts = promptsNanobot
	}
	s.prompts = promptsOf(prompts, s.dream.twoPhase)
	minutes, _ := strconv.ParseInt(string(idle), 10, 64)
	if idle == nil && s.Local {
		minutes = 15
	}
	s.idleMS = minutes * 60_000
	return s, err
}

// read reads the block. after is its member after_session, nil if that is absent or null.
//
// Errors: invalid_argument for an invalid cron expression.
func (b *dreamConfig) read(d *wirejson.Decoder) (after abi.Raw, err error) {
	mode, cron, hours := "", "", 0.0
	err = object.Read(d, nil, object.Optional("enabled", &b.on), object.Optional("allow_skills", &b.skills),
		object.Optional("mode", &mode),
		object.Optional("interval_h", &hours), object.Optional("cron", &cron), object.Optional("max_entries",
			&b.batch), object.Optional("entry_chars", &b.entryChars),
		object.Optional("file_chars", &b.fileChars), object.Optional("max_iterations", &b.rounds), object.Optional("model",
			&b.model),
		object.Optional("instruction", &b.instruction), object.Optional("after_session", &after),
		object.Optional("keep_sessions", &b.keepRuns))
	b.on, b.twoPhase, b.scheduled = b.on && mode != "off", mode == "two_phase", hours > 0 || cron != ""
	if hours > 0 {
		b.intervalMS = int64(hours * 3600_000)
	}
	if cron != "" && err == nil {
		var ok bool
		if b.cron, ok = parseSchedule(cron); !ok {
			err = abi.NewError(abi.CodeInvalidArgument,
				"dream.cron: want five fields: minute, hour, day of the month, month, day of the week")
		}
	}
	return after, err
}

// memory is the layers, in one operation.
type memory struct {
	nanobot.Base
	settings *settings
}

func open(c *sdk.Call) (nanobot.Memory, error) {
	s, err := sdk.Settings(c, parseSettings)
	if err != nil {
		return nil, err
	}
	return &memory{nanobot.NewBase(c, &s.Settings), s}, nil
}
