package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// setupScope makes workspace and peers. Sessions come with their first message.
//
// A workspace that was there is compared with the scope: an id that two scopes share would mix them. In read-only mode it only looks.
//
// Source: Honcho POST /v3/workspaces and POST .../peers, both get-or-create: 201 made, 200 existed.
func setupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	n := s.native(c)
	receipt := &abi.SetupReceipt{Ready: true, NativeScope: n.named(), Trace: s.trace()}
	if s.fixed != "" {
		receipt.Warnings = append(receipt.Warnings, "fixed_workspace: scopes share a workspace and are kept apart by the ids of peers and sessions only; a reset leaves the peers")
	}
	if c.ReadOnly {
		peers, err := s.count(c, request{route: "peers_list", workspace: n.workspace, body: s.peerFilter(n)})
		receipt.Existed = sdk.Ptr(peers > 0)
		return receipt, err
	}
	existed, err := s.makeWorkspace(c, n, receipt)
	if err != nil {
		return nil, err
	}
	for i, peer := range n.peers() {
		answer, err := s.send(c, request{route: "peer", workspace: n.workspace, body: s.peerBody(c, n, peer)})
		if err != nil {
			return nil, err
		}
		if s.fixed != "" && i == 0 {
			existed = answer.status == 200 // the workspace is not the scope's
		}
	}
	receipt.Existed = &existed
	return receipt, nil
}

// peerFilter narrows a list of peers to the scope's user, where the workspace holds others.
func (s *settings) peerFilter(n *native) []byte {
	if s.fixed == "" {
		return nil
	}
	return filters(func(e *jsontext.Encoder) { field(e, "id", n.user) })
}

func (s *settings) makeWorkspace(c *sdk.Call, n *native, receipt *abi.SetupReceipt) (existed bool, err error) {
	var e jsontext.Encoder
	e.ObjStart()
	field(&e, "id", n.workspace)
	if s.fixed == "" {
		e.FieldStart("metadata")
		s.writeScope(&e, c)
		if len(s.workspaceConfiguration) > 0 {
			e.FieldStart("configuration")
			e.Raw(s.workspaceConfiguration)
		}
	}
	e.ObjEnd()
	answer, err := s.send(c, request{route: "workspace", body: e.Bytes()})
	if err != nil || answer.status != 200 || s.fixed != "" {
		return err == nil && answer.status == 200, err
	}
	labelled, same, err := s.sameScope(c, answer.body)
	switch {
	case err != nil:
		return true, unusable("workspace", answer.status, answer.body, "is no workspace: "+err.Error())
	case !labelled:
		receipt.Warnings = append(receipt.Warnings, "workspace_unlabelled: the workspace was there without memhost's labels; something else may have made it")
	case !same:
		e := abi.NewError(abi.CodeIsolationBreach, "workspace "+n.workspace+" belongs to another scope, by its own metadata").
			WithHint("choose another memory.namespace: two installations share this Honcho")
		e.Route, e.Native = "workspace", nativeError(answer.status, answer.body)
		return true, e
	}
	return true, nil
}

// scopeLabels are the names under which a workspace's metadata holds its scope.
func (s *settings) scopeLabels(c *sdk.Call) [][2]string {
	return [][2]string{{"mh_provider", s.config.Provider}, {"mh_namespace", s.config.Namespace}, {"mh_run", c.Scope.RunID}, {"mh_persona", c.Scope.PersonaID},
		{"mh_agent", c.Scope.AgentID}, {"mh_generation", string(sdk.Number(c.Generation))}}
}

func (s *settings) writeScope(e *jsontext.Encoder, c *sdk.Call) {
	e.ObjStart()
	for _, l := range s.scopeLabels(c) {
		field(e, l[0], l[1])
	}
	e.ObjEnd()
}

// sameScope compares a workspace's metadata with the scope.
func (s *settings) sameScope(c *sdk.Call, workspace []byte) (labelled, same bool, err error) {
	same = true
	err = eachField(jsontext.DecodeBytes(workspace), func(d *jsontext.Decoder, key string) error {
		if key != "metadata" {
			return d.Skip()
		}
		return eachField(d, func(d *jsontext.Decoder, key string) error {
			for _, l := range s.scopeLabels(c) {
				if key == l[0] && d.Next() == jsontext.String {
					value, err := d.Str()
					labelled, same = true, same && value == l[1]
					return err
				}
			}
			return d.Skip()
		})
	})
	return labelled, same, err
}

// peerBody asks for a peer. Tool and system never, and the assistant only where it is wished, are observed: else the deriver extracts "facts" about the
// assistant from the output of tools.
func (s *settings) peerBody(c *sdk.Call, n *native, peer string) []byte {
	var e jsontext.Encoder
	e.ObjStart()
	field(&e, "id", peer)
	if s.fixed != "" {
		e.FieldStart("metadata")
		s.writeScope(&e, c)
	}
	within(&e, "configuration")
	flag(&e, "observe_me", s.observed(n, peer))
	e.ObjEnd()
	e.ObjEnd()
	return e.Bytes()
}
