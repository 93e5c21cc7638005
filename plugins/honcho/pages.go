package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// pageSize is the maximum page size of Honcho's lists.
const pageSize = 100

// newestFirst reverses a list.
var newestFirst = abi.QueryParam{Key: "reverse", Value: "true"}

// pageOf fetches one page of a list and reads its items.
func pageOf[T any](b *backend, r request, number, size int64, read func(abi.Raw) (T, error)) ([]T, page, error) {
	r.query = append([]abi.QueryParam{{Key: "page", Value: sdk.Itoa(number)}, {Key: "size", Value: sdk.Itoa(size)}},
		r.query...)
	if r.body == nil {
		r.body = []byte("{}")
	}
	answer, err := b.send(r)
	if err != nil {
		return nil, page{}, err
	}
	items, head, err := readPage(answer.body)
	var found []T
	if err == nil {
		found, err = readAll(items, read)
	}
	if err != nil {
		return nil, head, unreadable(r, answer.body, "list", err)
	}
	return found, head, nil
}

// idsOf fetches one page of a list and reads only the items' ids. The page's memory is reused for the next answer.
func idsOf(b *backend, r request, number, size int64) ([]string, page, error) {
	ids, head, err := pageOf(b, r, number, size, readID)
	if err == nil {
		b.Reuse(head.body)
	}
	return ids, head, err
}

// count requests only the total of a list.
func (b *backend) count(r request) (int64, error) {
	_, head, err := pageOf(b, r, 1, 1, func(abi.Raw) (struct{}, error) { return struct{}{}, nil })
	return head.total, err
}

// sessions lists one page of the scope's active sessions. In a fixed workspace these are the sessions of the peer.
func (b *backend) sessions(peer string, number int64) ([]string, page, error) {
	r := request{route: "sessions_list"}
	if b.shared() {
		r.route, r.peer, r.body = "peer_sessions", peer, filters(wire.Object{"is_active", true})
	}
	return idsOf(b, r, number, pageSize)
}

// members returns peers whose sessions together are all of the scope's. In a workspace of the scope's own, one peer is
// enough.
func (b *backend) members() []string {
	if !b.shared() {
		return []string{b.user}
	}
	return b.allPeers()
}

// filters returns the body of a list or search with these conditions. Values from outside must be escaped, because "*"
// would drop the condition.
func filters(conditions wire.Object) []byte { return wire.Object{"filters", conditions}.JSON() }

// about filters conclusions by owner: the self-collection of the user's peer, which the deriver writes by default. more
// are further conditions.
func (n *native) about(more ...any) wire.Object {
	return append(wire.Object{"observer_id", n.user, "observed_id", n.user}, more...)
}
