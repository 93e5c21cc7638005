package host

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/memhost/memhost/abi"
)

func TestAnAnswerThatIsNotUTF8IsRefusedWithItsPlace(t *testing.T) {
	s := openSlot(t, open(t, Options{InterceptGuest: func(e *abi.Envelope, enter EnterGuest) ([]byte, bool, error) {
		answer, isError, err := enter(e)
		return bytes.ReplaceAll(answer, []byte("caf?"), []byte("caf\xff")), isError, err
	}}), probeConfig(`{}`))
	_, err := s.Retrieve(context.Background(), ask("echo a caf?"))
	e := requireCode(t, err, abi.CodeInternal, "0xff", "not UTF-8", "a caf")
	assert.Equal(t, abi.ReasonContractBreach, e.Reason)
}

func TestAMisspelledSecretIsRefusedBeforeItIsSent(t *testing.T) {
	server, _ := backend(t)
	s := netSlot(t, server.URL, Options{})
	_, err := s.Retrieve(context.Background(), ask("http get h:authorization={{secret:apikey}}"))
	requireCode(t, err, abi.CodeInvalidArgument, `there is no secret "apikey"`, "the manifest declares api_key")
}

// A backend that got the placeholder would answer "unauthorized", which says nothing of what is missing.
func TestASecretThatIsNotSetIsNotSentAsText(t *testing.T) {
	server, _ := backend(t)
	s := openSlot(t, open(t, Options{}), probeConfig(fmt.Sprintf(`{"url":%q}`, server.URL)))
	for name, want := range map[string]string{"api_key": `the secret "api_key" is not set`, "apikey": `there is no secret "apikey"`} {
		_, err := s.Retrieve(t.Context(), ask("http get h:authorization={{secret:"+name+"}}"))
		requireCode(t, err, abi.CodeInvalidArgument, want)
	}
}
