package main

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
)

// payload is what save_memory was called with.
type payload struct {
	entry, update       string
	hasEntry, hasUpdate bool
}

// parsePayload reads the arguments: an object, a string that holds one, or a list whose first element is one.
func parsePayload(raw jsontext.Raw) (payload, error) {
	switch raw.Type() {
	case jsontext.Object:
		return parseFields(raw)
	case jsontext.String:
		text, err := jsontext.DecodeBytes(raw).Str()
		if err != nil || !jsontext.Valid([]byte(text)) {
			return payload{}, notPayload(raw)
		}
		inner := jsontext.Raw(strings.TrimSpace(text))
		return parsePayload(inner)
	case jsontext.Array:
		var first jsontext.Raw
		err := jsontext.DecodeBytes(raw).Arr(func(d *jsontext.Decoder) error {
			element, err := d.RawAppend(nil)
			if first == nil {
				first = element
			}
			return err
		})
		if err == nil && first != nil && first.Type() == jsontext.Object {
			return parseFields(first)
		}
	}
	return payload{}, notPayload(raw)
}

func notPayload(raw jsontext.Raw) error {
	return nanobot.BadOutput("the arguments of save_memory are not an object", 200, raw)
}

func parseFields(raw jsontext.Raw) (p payload, err error) {
	err = jsontext.DecodeBytes(raw).Obj(func(d *jsontext.Decoder, key string) (err error) {
		if d.Next() == jsontext.Null {
			return d.Null()
		}
		switch key {
		case "history_entry":
			p.entry, err = valueText(d)
			p.hasEntry = true
		case "memory_update":
			p.update, err = valueText(d)
			p.hasUpdate = true
		default:
			err = d.Skip()
		}
		return err
	})
	if err != nil {
		return payload{}, notPayload(raw)
	}
	p.entry, p.update = nanobot.StripThinking(p.entry), nanobot.StripThinking(p.update)
	return p, nil
}

// valueText is a string, or the compact JSON of another value.
func valueText(d *jsontext.Decoder) (string, error) {
	if d.Next() == jsontext.String {
		return d.Str()
	}
	raw, err := d.Raw()
	if err != nil {
		return "", err
	}
	return nanobot.CompactJSON(raw)
}

// check refuses what would lose something. Where payloads are not strict the half that is wrong is left out instead.
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
		return nanobot.BadOutput("save_memory: "+wrong, 200, []byte(p.update))
	}
	return nil
}
