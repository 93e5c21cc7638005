package main

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// canaryText is the one memory of canary cube a.
const canaryText = "The memhost canary is called Quillfeather and sits in cube a."

// verdict is what the isolation probe found.
type verdict struct {
	// isolation is filtered or unverified; never hard: a cube is a property of nodes in one database.
	isolation string
	// leak is the breach that was found, nil for none.
	leak *abi.Error
	// blind tells that the canary is stored and no search finds it: the embedder does not work.
	blind    bool
	warnings []string
}

// probe looks whether cube b sees what cube a holds, and searches a as the positive control. mayWrite lets it put the canary there first. It is at
// the same time the look at graph database and embedder.
//
// Errors: those of the server; a leak is no error here.
func (s *settings) probe(c *sdk.Call, mayWrite bool) (*verdict, error) {
	v := &verdict{isolation: "unverified"}
	leak, err := s.emptyCube(c)
	if v.leak = leak; leak != nil || err != nil {
		return v, err
	}
	if !s.isolationProbe {
		v.warnings = append(v.warnings, "isolation_unverified: isolation_probe is off")
		return v, nil
	}
	seen, err := s.seesCanary(c, v)
	if err != nil || v.leak != nil {
		return v, err
	}
	if !seen && mayWrite {
		if seen, err = s.plantCanary(c, v); err != nil || v.leak != nil {
			return v, err
		}
	}
	if !seen {
		if v.blind {
			v.warnings = append(v.warnings, "embedder: the canary is stored and no search finds it: MemOS's embedder does not work")
		} else {
			v.warnings = append(v.warnings, "isolation_unverified: there is no canary yet; the next set-up that may write puts it there")
		}
		return v, nil
	}
	_, err = s.searchCanary(c, s.canary("b"))
	if v.leak = leakOf(err); v.leak != nil || err != nil {
		return v, or(err, v.leak != nil)
	}
	v.isolation = "filtered"
	s.verified = v
	return v, nil
}

// leakOf is err when it says that somebody else's item was seen.
func leakOf(err error) *abi.Error {
	if abi.CodeOf(err) == abi.CodeIsolationBreach {
		return abi.AsError(err)
	}
	return nil
}

// or is err, unless it is told already.
func or(err error, told bool) error {
	if told {
		return nil
	}
	return err
}

// emptyCube lists cube b, which nobody ever writes: whatever is in it is somebody else's. It also proves that the graph database answers.
func (s *settings) emptyCube(c *sdk.Call) (*abi.Error, error) {
	groups, a, err := s.list(c, listing{cube: s.canary("b"), page: 1, size: 1})
	switch leak := leakOf(err); {
	case leak != nil:
		return leak, nil
	case err != nil:
		return nil, err
	case total(groups) > 0:
		return breach("get_memory", a, s.canary("b"), "another cube"), nil
	}
	return nil, nil
}

// seesCanary searches cube a for the canary.
func (s *settings) seesCanary(c *sdk.Call, v *verdict) (bool, error) {
	groups, err := s.searchCanary(c, s.canary("a"))
	if v.leak = leakOf(err); v.leak != nil {
		return false, nil
	}
	for i := range groups {
		for j := range groups[i].items {
			if strings.Contains(groups[i].items[j].memory, canaryText) {
				return true, err
			}
		}
	}
	return false, err
}

func (s *settings) searchCanary(c *sdk.Call, cube string) ([]group, error) {
	a, err := s.post(c, "search_fast", object(func(e *jsontext.Encoder) {
		putText(e, "user_id", cube)
		putTexts(e, "readable_cube_ids", cube)
		putText(e, "query", canaryText)
		putText(e, "mode", searchFast)
		limits{text: 1}.put(e)
		putText(e, "dedup", "no")
		putNumber(e, "relativity", 0)
		putBool(e, "internet_search", false)
	}))
	if err != nil {
		return nil, err
	}
	return readGroups("search_fast", a, cube)
}

// plantCanary puts the canary into cube a. One that is there and cannot be found was stored without a vector: it is replaced.
func (s *settings) plantCanary(c *sdk.Call, v *verdict) (bool, error) {
	cube := s.canary("a")
	there, err := s.exists(c, cube)
	if err != nil {
		return false, err
	}
	if there {
		if err := s.remove(c, cube); err != nil {
			return false, err
		}
	}
	a, err := s.post(c, "add_fast", object(func(e *jsontext.Encoder) {
		putText(e, "user_id", cube)
		putTexts(e, "writable_cube_ids", cube)
		putText(e, "session_id", "canary")
		putText(e, "async_mode", "sync")
		putText(e, "mode", "fast")
		e.FieldStart("messages")
		e.ArrStart()
		e.ObjStart()
		putText(e, "role", "user")
		putText(e, "content", canaryText)
		putText(e, "chat_time", "2026-01-01T00:00:00Z")
		putText(e, "message_id", "canary#0")
		e.ObjEnd()
		e.ArrEnd()
	}))
	if err != nil {
		return false, err
	}
	seen, err := s.seesCanary(c, v)
	if err != nil || seen || v.leak != nil {
		return seen, err
	}
	groups, _, err := s.list(c, listing{cube: cube, page: 1, size: 1, textOnly: true})
	if err != nil {
		return false, err
	}
	if total(groups) == 0 {
		return false, failure(abi.CodeUnavailable, "add_fast", 200, "MemOS answered 200 to the canary and stored nothing", a.body).WithReason("not_stored").
			WithHint("look into the server's log: its graph database refuses writes")
	}
	v.blind = true
	return false, nil
}

// exists asks whether any node carries the cube's id, soft-deleted ones included.
func (s *settings) exists(c *sdk.Call, cube string) (bool, error) {
	a, err := s.post(c, "exist", object(func(e *jsontext.Encoder) { putText(e, "mem_cube_id", cube) }))
	if err != nil {
		return false, err
	}
	found, known := false, false
	if a.data != nil && a.data.Type() == jsontext.Object {
		err = jsontext.DecodeBytes(a.data).Obj(func(d *jsontext.Decoder, key string) (err error) {
			if key != cube || d.Next() != jsontext.Bool {
				return d.Skip()
			}
			known = true
			found, err = d.Bool()
			return err
		})
	}
	if err != nil || !known {
		return false, unusable("exist", a, "data does not say whether the cube exists")
	}
	return found, nil
}
