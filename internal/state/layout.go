package state

import (
	"encoding/binary"
	"hash/crc32"
)

// The layout of the file. Integers are big-endian, so that bytes sort as numbers do.
//
//	bucket    key                                  payload
//	kv        space(16) key                        version(8) value
//	logs      space(16) len(name)(2) name seq(8)   entry
//	lognames  space(16) name                       last seq(8) bytes of the entries(8)
//	usage     space(16)                            bytes(8), no key when 0
//	tables    one bucket for each table: key       record
//	meta      "schema"                             the number in ASCII, without a checksum, for every version to read
//
// The length before a log's name separates "a" from "ab"; lognames gives fast access to the logs with a prefix, and to
// the end of a log. A log's entries are always 1 to last. Versions come from the sequence of bucket kv, which only
// grows.
//
// Every value except the schema is sealed: a CRC-32C of its key and payload precedes the payload, so that a damaged
// byte is an error and never a wrong answer.
const (
	bucketKV     = "kv"
	bucketLogs   = "logs"
	bucketNames  = "lognames"
	bucketUsage  = "usage"
	bucketTables = "tables"
	bucketMeta   = "meta"

	keySchema = "schema"

	spaceLen   = len(Space{})
	sealLen    = crc32.Size
	versionLen = 8
)

// spaceKey is the key of a kv pair or of a log's name.
func spaceKey(space Space, name string) []byte {
	k := make([]byte, 0, spaceLen+len(name)+1)
	k = append(k, space[:]...)
	return append(k, name...)
}

// logPrefix is the common prefix of the keys of a log's entries.
func logPrefix(space Space, name string) []byte {
	k := make([]byte, 0, spaceLen+2+len(name)+8)
	k = append(k, space[:]...)
	k = binary.BigEndian.AppendUint16(k, uint16(len(name)))
	return append(k, name...)
}

// logKey appends a sequence number to a logPrefix without changing it.
func logKey(prefix []byte, seq int64) []byte {
	return binary.BigEndian.AppendUint64(prefix[:len(prefix):len(prefix)], uint64(seq))
}

// seal returns the stored form of a payload given in parts.
func seal(key []byte, payload ...[]byte) []byte {
	n := sealLen
	for _, p := range payload {
		n += len(p)
	}
	v := make([]byte, sealLen, n)
	for _, p := range payload {
		v = append(v, p...)
	}
	binary.BigEndian.PutUint32(v, checksum(key, v[sealLen:]))
	return v
}

// unseal returns the payload, which is part of stored. want is its minimum length.
func unseal(key, stored []byte, want int) ([]byte, error) {
	if len(stored) < sealLen+want {
		return nil, damaged("the value of key %s has %d bytes, want at least %d", quote(string(key)), len(stored),
			sealLen+want)
	}
	payload := stored[sealLen:]
	if have, sum := binary.BigEndian.Uint32(stored), checksum(key, payload); have != sum {
		return nil, damaged("the value of key %s has checksum %08x, want %08x", quote(string(key)), sum, have)
	}
	return payload, nil
}

func checksum(key, payload []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Update(0, table, key), table, payload)
}

// sealInts and unsealInts encode and decode the fixed payloads of lognames and usage.
func sealInts(key []byte, ns ...int64) []byte {
	p := make([]byte, 0, 16)
	for _, n := range ns {
		p = binary.BigEndian.AppendUint64(p, uint64(n))
	}
	return seal(key, p)
}

func unsealInts(key, stored []byte, ns ...*int64) error {
	p, err := unseal(key, stored, 8*len(ns))
	if err != nil {
		return err
	}
	for i, n := range ns {
		*n = int64(binary.BigEndian.Uint64(p[8*i:]))
	}
	return nil
}

// unsealValue splits the payload of a kv pair.
func unsealValue(key, stored []byte) (version int64, data []byte, err error) {
	p, err := unseal(key, stored, versionLen)
	if err != nil {
		return 0, nil, err
	}
	return int64(binary.BigEndian.Uint64(p)), p[versionLen:], nil
}
