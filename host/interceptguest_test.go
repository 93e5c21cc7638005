package host_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

func TestAnAnswerThatIsNotUTF8IsRefusedWithItsPlace(t *testing.T) {
	s := host.OpenSlot(t, host.Open(t, host.Options{InterceptGuest: func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
		answer, isError, err := enter(e)
		return bytes.ReplaceAll(answer, []byte("caf?"), []byte("caf\xff")), isError, err
	}}), host.ProbeConfig(`{}`))
	_, err := s.Retrieve(context.Background(), host.Ask("echo a caf?"))
	e := host.RequireCode(t, err, abi.CodeInternal, "0xff", "not UTF-8", "a caf")
	assert.Equal(t, abi.ReasonContractBreach, e.Reason)
}

func TestAMisspelledSecretIsRefusedBeforeItIsSent(t *testing.T) {
	server, _ := host.Backend(t)
	s := host.NetSlot(t, server.URL, host.Options{})
	_, err := s.Retrieve(context.Background(), host.Ask("http get h:authorization={{secret:apikey}}"))
	host.RequireCode(t, err, abi.CodeInvalidArgument, `there is no secret "apikey"`, "the manifest declares api_key")
}

// A backend that got the placeholder would answer "unauthorized", which says nothing of what is missing.
func TestASecretThatIsNotSetIsNotSentAsText(t *testing.T) {
	server, _ := host.Backend(t)
	s := host.OpenSlot(t, host.Open(t, host.Options{}), host.ProbeConfig(fmt.Sprintf(`{"url":%q}`, server.URL)))
	for name, want := range map[string]string{"api_key": `the secret "api_key" is not set`, "apikey": `there is no secret "apikey"`} {
		_, err := s.Retrieve(t.Context(), host.Ask("http get h:authorization={{secret:"+name+"}}"))
		host.RequireCode(t, err, abi.CodeInvalidArgument, want)
	}
}
