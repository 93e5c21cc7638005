package state

import (
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

var scope = abi.MemoryScope{RunID: "r", PersonaID: "p"}

// filled is a state with five keys and a log of five entries, in pages of two.
func filled(t *testing.T) *State {
	h := sdktest.New(t, sdktest.Options{PageLimit: 2})
	s := Of(h.Call(abi.OpRecordEvent, scope))
	for n := range 5 {
		s.Put("key/"+strconv.Itoa(n), []byte{'a'}, 0)
		s.Append("log", []byte(strconv.Itoa(n+1)))
	}
	assert.NoError(t, s.Err())
	return s
}

func TestLoopsGoThroughAllPages(t *testing.T) {
	s := filled(t)
	var keys, from2to4, newest string
	for item := range s.Values("key/") {
		keys += item.Key[4:] + string(item.Value)
	}
	for entry := range s.Entries("log", 2, 4) {
		from2to4 += string(entry.Data)
	}
	for entry := range s.Newest("log", 2) {
		newest += string(entry.Data)
	}
	assert.Equal(t, []string{"0a1a2a3a4a", "234", "54321"}, []string{keys, from2to4, newest})
	n, last := s.Last("log")
	assert.EqualValues(t, 5, n)
	assert.Equal(t, "5", string(last))
	n, _ = s.Last("other")
	assert.Zero(t, n)
	assert.NoError(t, s.Err())
}

func TestAfterTheFirstErrorNothingIsReadOrWritten(t *testing.T) {
	s := filled(t)
	seen := 0
	for range s.Values("key/") {
		seen++
		s.Put("key/0", nil, 7) // not the key's version
	}
	assert.Equal(t, 1, seen, "the loop ends with the error")
	assert.Equal(t, abi.CodeConflict, abi.CodeOf(s.Err()))
	s.Fail(errors.New("a second error"))
	assert.Equal(t, abi.CodeConflict, abi.CodeOf(s.Err()), "the first one is kept")
	assert.False(t, s.Has("key/1"))
	s.Put("new", nil, 0)
	s.Delete("key/")
	s.Append("log", nil)
	_, last, err := s.Read(abi.StateReadRequest{Log: "log"})
	assert.NoError(t, err)
	assert.EqualValues(t, 5, last)
	_, version, err := s.Call.Get("new")
	assert.NoError(t, err)
	assert.Zero(t, version)
	_, version, err = s.Call.Get("key/1")
	assert.NoError(t, err)
	assert.NotZero(t, version)
}

func TestLoadRefusesWhatIsNoObject(t *testing.T) {
	s := filled(t)
	s.Load("key/0")
	assert.Equal(t, "state_io", abi.AsError(s.Err()).Reason)
}

func TestRemoveTakesOneKeyAndNotThoseThatBeginWithIt(t *testing.T) {
	s := filled(t)
	s.Put("key", []byte("alone"), 0)
	s.Put("ke", []byte("shorter"), 0)
	s.Remove("key")
	left := ""
	for item := range s.Values("") {
		left += item.Key + "=" + string(item.Value) + " "
	}
	assert.NoError(t, s.Err())
	assert.Equal(t, "ke=shorter key/0=a key/1=a key/2=a key/3=a key/4=a ", left)
	s.Remove("absent")
	assert.NoError(t, s.Err())
}
