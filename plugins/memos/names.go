package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// keyName holds the first user name that the scope has seen; keyNames is written once there is another.
const (
	keyName  = "user_name"
	keyNames = "user_names"
)

// namesSpeakers reports whether an event's messages have their names before their text: MemOS drops names and would
// treat two people as one. With name_prefix auto it returns true from the event in which a second user name occurs in
// the scope.
func (b *backend) namesSpeakers(e *abi.MemoryEvent) (bool, error) {
	if b.namePrefix != prefixAuto {
		return b.namePrefix == prefixAlways, nil
	}
	first := ""
	for i := range e.Messages {
		m := &e.Messages[i]
		if m.Role != abi.RoleUser || !sdk.Named(m) {
			continue
		}
		if first == "" {
			known, _, err := b.Get(keyName)
			if err != nil {
				return false, err
			}
			if first = string(known); first == "" {
				first = m.Name
				if err := b.Put(keyName, []byte(first), sdk.AnyVersion); err != nil {
					return false, err
				}
			}
		}
		if m.Name != first {
			return true, b.Put(keyNames, []byte{1}, sdk.AnyVersion)
		}
	}
	several, _, err := b.Get(keyNames)
	return len(several) > 0, err
}
