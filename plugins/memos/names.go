package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// keyName holds the first name of a user that the scope has seen, keyNames is written once another one has followed.
const (
	keyName  = "user_name"
	keyNames = "user_names"
)

// namesSpeakers reports whether the messages of an event have their names before their text, since MemOS drops names
// and would remember of two people as of one. With name_prefix auto that is so from the event on in which a second name
// occurs among the scope's users.
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
