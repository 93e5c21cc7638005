package sdk_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
)

const oneRoute = `{"routes":[{"name":"list","origin":"main","method":"GET","path":"/list","class":"read"}]}`

func TestABodyStaysAsItIsWhenTheNextAnswerComes(t *testing.T) {
	pages := []string{"first", "", "a longer third one"}
	at := 0
	h := sdktest.New(t, sdktest.Options{Manifest: []byte(oneRoute), HTTP: func(sdktest.Request) sdktest.Reply {
		at++
		return sdktest.Reply{Body: pages[at-1]}
	}})
	c := h.Call(abi.OpInventory, abi.MemoryScope{RunID: "r", PersonaID: "p"})
	var bodies [][]byte
	for range pages {
		_, body, err := c.HTTP(abi.HTTPRequest{Route: "list"}, nil)
		require.NoError(t, err)
		bodies = append(bodies, body)
	}
	for i, body := range bodies {
		assert.Equal(t, pages[i], string(body))
	}
}

func TestAPageOfStateStaysAsItIs(t *testing.T) {
	h := sdktest.New(t, sdktest.Options{})
	c := h.Call(abi.OpRecordEvent, abi.MemoryScope{RunID: "r", PersonaID: "p"})
	require.NoError(t, c.Put("1", []byte("one"), sdk.AnyVersion))
	page, more, err := c.List(abi.StateListRequest{Values: true})
	require.NoError(t, err)
	require.False(t, more)
	_, _, err = c.Get("1")
	require.NoError(t, err)
	assert.Equal(t, []sdk.Item{{Key: "1", Version: page[0].Version, Size: 3, Value: []byte("one")}}, page)
}
