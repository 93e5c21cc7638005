package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// pageSize is the most that Honcho's lists give.
const pageSize = 100

// newestFirst turns a list around.
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

// idsOf fetches one page of a list and reads only the items' ids. The page's memory takes the next answer.
func idsOf(b *backend, r request, number, size int64) ([]string, page, error) {
	ids, head, err := pageOf(b, r, number, size, readID)
	if err == nil {
		b.Reuse(head.body)
	}
	return ids, head, err
}

// count asks a list for its total only.
func (b *backend) count(r request) (int64, error) {
	_, head, err := pageOf(b, r, 1, 1, func(abi.Raw) (struct{}, error) { return struct{}{}, nil })
	return head.total, err
}

// sessions lists active sessions of the scope, one page. In a fixed workspace they are those that the peer belongs to.
func (b *backend) sessions(peer string, number int64) ([]string, page, error) {
	r := request{route: "sessions_list"}
	if b.shared() {
		r.route, r.peer, r.body = "peer_sessions", peer, filters(wire.Object{"is_active", true})
	}
	return idsOf(b, r, number, pageSize)
}

// members are the peers whose sessions together are all of the scope's: one stands for all in a workspace of the
// scope's own.
func (b *backend) members() []string {
	if !b.shared() {
		return []string{b.user}
	}
	return b.allPeers()
}

// filters is the body of a list or search with these conditions. What is filtered by never comes from outside
// unescaped: "*" would drop the condition.
func filters(conditions wire.Object) []byte { return wire.Object{"filters", conditions}.JSON() }

// about filters conclusions by whose they are: the self-collection of the user's peer, which is the one that the
// deriver writes by default. more are further conditions.
func (n *native) about(more ...any) wire.Object {
	return append(wire.Object{"observer_id", n.user, "observed_id", n.user}, more...)
}
