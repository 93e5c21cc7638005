package sdk_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
)

const oneRoute = `{"routes":[{"name":"list","origin":"main","method":"GET","path":"/list","class":"read"}]}`

func TestABodyIsReadIntoTheMemoryOfTheOneThatWasHandedBack(t *testing.T) {
	pages := []string{strings.Repeat("a", 1000), strings.Repeat("b", 500), strings.Repeat("c", 2000), "d",
		strings.Repeat("e", 1000)}
	read := func(t *testing.T, done func(*sdk.Call, []byte)) (bodies [][]byte) {
		at := 0
		h := sdktest.New(t, sdktest.Options{Manifest: []byte(oneRoute), HTTP: func(sdktest.Request) sdktest.Reply {
			at++
			return sdktest.Reply{Body: pages[at-1]}
		}})
		c := h.Call(abi.OpInventory, abi.MemoryScope{RunID: "r", PersonaID: "p"})
		for _, want := range pages {
			_, body, err := c.HTTP(abi.HTTPRequest{Route: "list"}, nil)
			require.NoError(t, err)
			assert.Equal(t, want, string(body))
			bodies = append(bodies, body)
			done(c, body)
		}
		return bodies
	}
	t.Run("kept, it stays as it is", func(t *testing.T) {
		for i, body := range read(t, func(*sdk.Call, []byte) {}) {
			assert.Equal(t, pages[i], string(body))
		}
	})
	t.Run("handed back, the next of the same size finds room, though each use costs the head's bytes",
		func(t *testing.T) {
			kept := pages
			defer func() { pages = kept }()
			pages = nil
			for _, letter := range "abcdefgh" {
				pages = append(pages, strings.Repeat(string(letter), 1000))
			}
			intact := 0
			for i, body := range read(t, (*sdk.Call).Reuse) {
				if string(body) == pages[i] {
					intact++
				}
			}
			assert.Equal(t, 2, intact, "the first, which left no room for a head, and the last")
		})
	t.Run("handed back, it is overwritten", func(t *testing.T) {
		bodies := read(t, (*sdk.Call).Reuse)
		assert.Contains(t, string(bodies[0]), pages[1])
		assert.Equal(t, pages[2], string(bodies[2]), "a short one has room of its own")
	})
}

func TestValuesOfAPageOfStateAreHandedBack(t *testing.T) {
	h := sdktest.New(t, sdktest.Options{})
	c := h.Call(abi.OpRecordEvent, abi.MemoryScope{RunID: "r", PersonaID: "p"})
	for _, key := range []string{"1", "2", "3"} {
		require.NoError(t, c.Put(key, []byte(strings.Repeat(key, 100)), sdk.AnyVersion))
	}
	require.NoError(t, c.Put("0", nil, sdk.AnyVersion))
	list := func() []sdk.Item {
		page, _, err := c.List(abi.StateListRequest{Values: true})
		require.NoError(t, err)
		require.Len(t, page, 4)
		return page
	}
	first := list()
	c.ReuseValues()
	value, _, err := c.Get("3")
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("3", 100), string(value))
	assert.NotEqual(t, strings.Repeat("1", 100), string(first[1].Value), "the answer was read into the page's memory")
	assert.Equal(t, "1", first[1].Key)
	c.ReuseValues()
	assert.Equal(t, strings.Repeat("3", 100), string(value), "handed back once only")
}
