package memory

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/memhost/memhost/abi"
)

func TestWhatAnAskedProviderDidNotEraseIsSaid(t *testing.T) {
	done := &abi.ResetReceipt{Status: abi.ResetDone}
	rest := &abi.ResetReceipt{Status: abi.ResetDone, Remains: []string{"history: kept", "buffer: kept"}}
	assert.Empty(t, notErased(done, nil))
	assert.Equal(t, "history: kept; buffer: kept", notErased(rest, nil))
	assert.Equal(t, "the reset is in_progress", notErased(&abi.ResetReceipt{Status: abi.ResetInProgress}, nil))
	assert.Contains(t, notErased(nil, errors.New("backend down")), "backend down")
}
