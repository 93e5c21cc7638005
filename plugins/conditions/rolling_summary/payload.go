package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk/chat"
)

// payload holds the arguments of save_memory.
type payload struct {
	entry, update       string
	hasEntry, hasUpdate bool
}

// parsePayload reads the arguments: an object, a string that holds one, or a list whose first element is one.
func parsePayload(raw abi.Raw) (payload, error) {
	switch wirejson.Raw(raw).Type() {
	case wirejson.Object:
		return parseMembers(raw)
	case wirejson.String:
		text, err := wirejson.DecodeBytes(raw).Str()
		if err == nil && wirejson.Valid([]byte(text)) {
			return parsePayload(abi.Raw(strings.TrimSpace(text)))
		}
	case wirejson.Array:
		var first wirejson.Raw
		err := wirejson.DecodeBytes(raw).Arr(func(d *wirejson.Decoder) (err error) {
			if first != nil {
				return d.Skip()
			}
			first, err = d.RawAppend(nil)
			return err
		})
		if err == nil && first.Type() == wirejson.Object {
			return parseMembers(abi.Raw(first))
		}
	}
	return payload{}, notPayload(raw)
}

func notPayload(raw abi.Raw) error {
	return model.BadOutput("the arguments of save_memory are not an object", 200, raw)
}

func parseMembers(raw abi.Raw) (payload, error) {
	var entry, update abi.Raw
	err := object.Decode(raw, object.Optional("history_entry", &entry), object.Optional("memory_update", &update))
	p := payload{hasEntry: entry != nil, hasUpdate: update != nil}
	if err == nil && p.hasEntry {
		p.entry, err = textOf(entry)
	}
	if err == nil && p.hasUpdate {
		p.update, err = textOf(update)
	}
	if err != nil {
		return payload{}, notPayload(raw)
	}
	return p, nil
}

// textOf returns a string without thinking blocks, or the compact JSON of another value.
func textOf(raw abi.Raw) (text string, err error) {
	if wirejson.Raw(raw).Type() == wirejson.String {
		text, err = wirejson.DecodeBytes(raw).Str()
	} else {
		text, err = object.Compact(raw)
	}
	words, _ := chat.StripThoughts(text)
	return words, err
}

// check rejects a payload that would lose something. If payloads are not strict, the wrong half is left out instead.
func (p *payload) check(strict bool, before string) error {
	wrong := ""
	if !p.hasEntry || strings.TrimSpace(p.entry) == "" {
		wrong, p.hasEntry = "history_entry is missing or blank", false
	}
	switch {
	case !p.hasUpdate:
		wrong = "memory_update is missing"
	case strings.TrimSpace(p.update) == "" && strings.TrimSpace(before) != "":
		wrong, p.hasUpdate = "memory_update is blank and would erase the memory", false
	}
	if wrong != "" && strict {
		return model.BadOutput("save_memory: "+wrong, 200, []byte(p.update))
	}
	return nil
}
