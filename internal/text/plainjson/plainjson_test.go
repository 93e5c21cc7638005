package plainjson

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTextStaysReadable(t *testing.T) {
	text, err := Marshal(map[string]string{"a": "<b> & \"c\"\n"})
	require.NoError(t, err)
	assert.Equal(t, `{"a":"<b> & \"c\"\n"}`, string(text))
	_, err = Marshal(make(chan int))
	assert.Error(t, err)
}
