package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// sharedWorkspace is the warning about a fixed workspace.
const sharedWorkspace = "fixed_workspace: scopes share a workspace and are kept apart by the ids of peers and " +
	"sessions only; a reset leaves the peers"

// setupScope makes workspace and peers. Sessions come with their first message.
//
// A workspace that was there is compared with the scope: an id that two scopes share would mix them. In read-only mode
// it only looks.
//
// Source: Honcho POST /v3/workspaces and POST .../peers, both get-or-create: 201 made, 200 existed.
func setupScope(b *backend, _ *abi.Empty) (*abi.SetupReceipt, error) {
	receipt := &abi.SetupReceipt{Ready: true, NativeScope: b.ids(), Trace: b.trace("workspace peer")}
	if b.shared() {
		receipt.Warnings = append(receipt.Warnings, sharedWorkspace)
	}
	if b.ReadOnly {
		receipt.Trace.NativeOperation = "peers_list"
		exists, err := b.exists()
		if err != nil {
			return nil, err
		}
		receipt.Existed = &exists
		if !exists {
			err = b.checkNamed()
		}
		return receipt, err
	}
	existed, err := b.makeWorkspace(receipt)
	if err != nil {
		return nil, err
	}
	for i, peer := range b.peers() {
		answer, err := b.send(request{route: "peer", body: b.peerBody(peer)})
		if err != nil {
			return nil, err
		}
		if b.shared() && i == 0 {
			existed = answer.status == 200 // the workspace belongs to another scope
		}
	}
	receipt.Existed = &existed
	if b.speakers == speakersPeers && !existed {
		err = b.Put(keySpeakers, []byte(speakersPeers), sdk.AnyVersion)
	}
	return receipt, err
}

// exists reports whether the scope's user has a peer, and so the scope has a memory.
func (b *backend) exists() (bool, error) {
	peers, err := b.count(request{route: "peers_list", body: filters(wire.Object{"id", b.user})})
	return peers > 0, err
}

// checkNamed determines why the scope's user has no peer: if its workspace has others, the user has another name there.
func (b *backend) checkNamed() error {
	if b.shared() {
		return nil // the others belong to other scopes
	}
	others, err := b.count(request{route: "peers_list"})
	if err == nil && others > 0 {
		err = b.renamedError("another name")
	}
	return err
}

// renamedError returns the error for a scope whose user has another peer than peer_names says: what was derived for
// that peer would not be found.
func (b *backend) renamedError(was string) error {
	return abi.NewError(abi.CodeConflict, "workspace "+b.workspace+" has its user under "+was+", not "+b.user+
		": what Honcho derived would not be found").WithReason("peer_renamed").
		WithHint("restore peer_names as it was, or reset the scope; names hold for scopes that are new")
}

func (b *backend) makeWorkspace(receipt *abi.SetupReceipt) (existed bool, err error) {
	body := wire.Object{"id", b.workspace}
	if !b.shared() {
		body = append(body, "metadata", append(b.labels(), "mh_user_peer", b.user, "mh_speakers", b.speakers),
			"configuration", b.workspaceConfiguration)
	}
	answer, err := b.send(request{route: "workspace", noWorkspace: true, body: body.JSON()})
	if err != nil || answer.status != 200 || b.shared() {
		return err == nil && answer.status == 200, err
	}
	switch labelled, same := b.sameScope(answer.body); {
	case !labelled:
		receipt.Warnings = append(receipt.Warnings, "workspace_unlabelled: the workspace was there without memhost's "+
			"labels; something else may have made it")
	case !same:
		return true, breach("workspace", "workspace "+b.workspace+", which belongs to another scope by its own "+
			"metadata", answer.body).
			WithHint("choose another memory.namespace: two installations share this Honcho")
	default:
		was := nameOr(wire.Text(wire.At(answer.body, "metadata", "mh_user_peer")), b.defaultUser())
		if was != b.user {
			return true, b.renamedError(was)
		}
		if wire.Text(wire.At(answer.body, "metadata", "mh_speakers")) == speakersPeers &&
			b.speakers == speakersPeers {
			if err := b.Put(keySpeakers, []byte(speakersPeers), sdk.AnyVersion); err != nil {
				return true, err
			}
			return true, b.meetAgain()
		}
	}
	return true, nil
}

// labels are the scope's ids in the metadata of a workspace or peer.
func (b *backend) labels() wire.Object {
	return wire.Object{"mh_provider", b.config.Provider, "mh_namespace", b.config.Namespace, "mh_run", b.Scope.RunID,
		"mh_persona", b.Scope.PersonaID, "mh_agent", b.Scope.AgentID, "mh_generation", sdk.Itoa(b.Generation)}
}

// sameScope compares a workspace's metadata with the scope.
func (b *backend) sameScope(workspace abi.Raw) (labelled, same bool) {
	metadata, want := wire.At(workspace, "metadata"), b.labels()
	same = true
	for i := 0; i < len(want); i += 2 {
		if value := wire.At(metadata, want[i].(string)); value != nil {
			labelled, same = true, same && wire.Text(value) == want[i+1]
		}
	}
	return labelled, same
}

// peerBody returns the request for a peer. Tool and system are never observed, the assistant only if configured:
// otherwise the deriver extracts "facts" about the assistant from the output of tools.
func (b *backend) peerBody(peer string) []byte {
	body, metadata := wire.Object{"id", peer}, wire.Object{}
	if b.shared() {
		metadata = b.labels()
	}
	if name := b.nameOf(peer); name != "" {
		metadata = append(metadata, keyName, name)
	}
	if len(metadata) > 0 {
		body = append(body, "metadata", metadata)
	}
	return append(body, "configuration", wire.Object{"observe_me", b.observed(peer)}).JSON()
}
