package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// nativeMutation changes the graph by hand: delete_fact {uuid}, delete_episode {uuid}, and on MCP add_triplet {source, relation, fact, target}. On core see coreMutation.
//
// The servers delete by UUID in any group, so Neo4j is asked first whose it is. Deleting reopens no fact that the deleted one had closed. On REST a deleted
// episode leaves its facts; on MCP those that it was the first to assert go with it, even if others asserted them too.
//
// Errors: not_found for a UUID that is not the scope's; unsupported without Bolt.
func nativeMutation(c *sdk.Call, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	gid, err := s.groupOf(c)
	if err != nil {
		return nil, err
	}
	if s.core {
		return s.coreMutation(c, gid, r)
	}
	switch r.Name {
	case "delete_fact":
		return s.deleteByID(c, gid, r, "bolt_owner_fact", "rest_delete_fact", "mcp_delete_fact", "delete_entity_edge")
	case "delete_episode":
		return s.deleteByID(c, gid, r, "bolt_owner_episode", "rest_delete_episode", "mcp_delete_episode", "delete_episode")
	case "add_triplet":
		return s.addTriplet(c, gid, r)
	}
	return nil, abi.NewError(abi.CodeInvalidArgument, "name: no native mutation "+jsontext.Quote(cutText(r.Name, 80))).
		WithHint("delete_fact, delete_episode, and with surface mcp or core add_triplet")
}

func (s *settings) deleteByID(c *sdk.Call, gid string, r *abi.NativeMutation, owner, restRoute, mcpRoute, tool string) (*abi.MutationReceipt, error) {
	if err := s.needBolt("native mutation " + r.Name); err != nil {
		return nil, err
	}
	uuid, err := jsontext.DecodeBytes(r.Params["uuid"]).Str()
	if err != nil || !isUUID(uuid) {
		return nil, abi.NewError(abi.CodeInvalidArgument, "params.uuid: want a UUID in lower case")
	}
	_, mine, err := boltOwned(c, owner, gid, uuid)
	if err != nil {
		return nil, err
	}
	if !mine {
		return nil, abi.NewError(abi.CodeNotFound, "params.uuid: the scope has nothing of that kind with this id")
	}
	trace := &abi.Trace{BackendName: s.config.Provider, NativeOperation: tool}
	if s.mcp {
		_, err = s.tool(c, mcpRoute, tool, append(append([]byte(`{"uuid":`), sdk.Text(uuid)...), '}'))
	} else {
		err = s.restDone(c, abi.HTTPRequest{Route: restRoute, Params: abi.Members[string]{{Name: "uuid", Value: uuid}}}, nil)
		trace.NativeOperation = "DELETE"
		if r.Name == "delete_episode" {
			trace.Warnings = append(trace.Warnings, "facts_remain: the REST service removes the episode alone; its facts stay, with a source that is gone")
		}
	}
	if err != nil {
		return nil, err
	}
	return &abi.MutationReceipt{Status: "applied", NativeIDs: []string{uuid}, Trace: trace}, nil
}

func (s *settings) addTriplet(c *sdk.Call, gid string, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	if !s.mcp {
		return nil, abi.NewError(abi.CodeUnsupported, "add_triplet exists on Graphiti's MCP server only").WithHint("use surface: mcp, or core with triplets: true")
	}
	var e jsontext.Encoder
	e.ObjStart()
	for _, p := range [...][2]string{{"source", "source_node_name"}, {"relation", "edge_name"}, {"fact", "fact"}, {"target", "target_node_name"}} {
		value, err := jsontext.DecodeBytes(r.Params[p[0]]).Str()
		if err != nil || value == "" {
			return nil, abi.NewError(abi.CodeInvalidArgument, "params."+p[0]+": want a text")
		}
		e.FieldStart(p[1])
		e.Str(cutText(value, 2*labelMax))
	}
	e.FieldStart("group_id")
	e.Str(gid)
	e.ObjEnd()
	const route = "mcp_add_triplet"
	body, err := s.tool(c, route, "add_triplet", e.Bytes())
	if err != nil {
		return nil, err
	}
	receipt := &abi.MutationReceipt{Status: "applied", Trace: &abi.Trace{BackendName: s.config.Provider, NativeOperation: "add_triplet",
		Warnings: []string{"triplet_undated: the fact has no source episode, and its date is the LLM's guess"}}}
	err = fields(route, body, func(d *jsontext.Decoder, key string) error {
		if key != "edges" {
			return d.Skip()
		}
		return d.Arr(func(d *jsontext.Decoder) error {
			var x item
			err := d.Obj(x.decode)
			receipt.NativeIDs = append(receipt.NativeIDs, x.uuid)
			return err
		})
	})
	return receipt, err
}
