package archive

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/state/segments"
)

// personSet says whose events a segment has, so that forgetting a person does not read the other segments. It is a sorted
// list of digests without duplicates. Digests are short: if two people have the same one, a segment is read in vain.
type personSet []uint32

// personDigest is the first four bytes of a user id's SHA-256.
func personDigest(userID string) uint32 {
	sum := sha256.Sum256([]byte(userID))
	return binary.BigEndian.Uint32(sum[:])
}

// add adds a person. The caller sorts the list at the end.
func (p *personSet) add(userID string) {
	digest := personDigest(userID)
	if n := len(*p); n == 0 || (*p)[n-1] != digest { // neighbours are often of one person
		*p = append(*p, digest)
	}
}

func (p personSet) sorted() personSet {
	slices.Sort(p)
	return slices.Compact(p)
}

func (p personSet) has(userID string) bool {
	_, found := slices.BinarySearch(p, personDigest(userID))
	return found
}

// encode returns the list's record: four bytes for each digest.
func (p personSet) encode() []byte {
	b := make([]byte, 0, 4*len(p))
	for _, digest := range p {
		b = binary.BigEndian.AppendUint32(b, digest)
	}
	return b
}

// peopleOf reads the list of a segment. known is false for a segment that was sealed before there were such lists.
func (a *Archive) peopleOf(ctx context.Context, info segments.Info) (list personSet, known bool, err error) {
	record, err := a.Store.Record(ctx, a.whose, numberKey(info.First))
	if err != nil || record == nil {
		return nil, false, state.ContractError(err)
	}
	list = make(personSet, 0, len(record)/4) // not nil if it is empty
	for ; len(record) >= 4; record = record[4:] {
		list = append(list, binary.BigEndian.Uint32(record))
	}
	return list, true, nil
}

// peopleOfAll is the union of the lists of several segments; unknown if one of them is.
func (a *Archive) peopleOfAll(ctx context.Context, infos []segments.Info) (all personSet, known bool, err error) {
	for _, info := range infos {
		list, known, err := a.peopleOf(ctx, info)
		if err != nil || !known {
			return nil, false, err
		}
		all = append(all, list...)
	}
	return all.sorted(), true, nil
}
