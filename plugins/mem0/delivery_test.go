package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/sdk/sdktest"
)

func TestNativeCallsOfEachOperation(t *testing.T) {
	r, _ := ossRig(t, "mem0", "", mem0.Options{})
	calls := func(want string) {
		t.Helper()
		assert.Equal(t, want, r.routes())
		r.forget()
	}
	r.setUp()
	calls("openapi configuration list")
	r.mustRecord(turn("e1", "I drink oat milk. I live in Lisbon."))
	calls("add memory memory")
	id := r.mustRecord(turn("e2", "I play chess.")).NativeIDs[0]
	calls("add memory")
	r.mustRetrieve(&abi.RetrieveRequest{Query: "milk"})
	calls("search")
	r.mustRetrieve(&abi.RetrieveRequest{Query: "milk", Context: "personal"})
	calls("search list") // nothing was found: does the store still have its data?
	_, err := sdktest.Do(r.Host, abi.OpReadiness, maria, withBackend(readiness), &abi.ReadinessMarkers{})
	require.NoError(t, err)
	calls("")
	r.findEvent("e1", longAgo)
	calls("search")
	r.findEvent("never", longAgo)
	calls("search list")
	_, err = sdktest.Do(r.Host, abi.OpInventory, maria, withBackend(inventory), &abi.Empty{})
	require.NoError(t, err)
	calls("list")
	_, err = sdktest.Do(r.Host, abi.OpProvenance, maria, withBackend(provenance),
		&abi.ProvenanceRequest{Scope: maria, NativeID: id})
	require.NoError(t, err)
	calls("memory history")
	_, err = sdktest.Do(r.Host, abi.OpHealth, abi.MemoryScope{}, health, &abi.Empty{})
	require.NoError(t, err)
	calls("setup_status providers")
	_, err = sdktest.Do(r.Host, abi.OpResetScope, maria, withBackend(resetScope), &abi.Empty{})
	require.NoError(t, err)
	calls("delete_scope list")

	fresh, _ := ossRig(t, "mem0", `"verify_writes":false,"api":"oss"`, mem0.Options{})
	fresh.mustRecord(turn("e1", "I drink oat milk. I live in Lisbon."))
	assert.Equal(t, "add", fresh.routes())

	p := newRig(t, "mem0", "", &mem0.Platform{Token: key})
	p.setUp()
	assert.Equal(t, "openapi platform_ping platform_list", p.routes())
	p.forget()
	receipt := p.mustRecord(turn("e1", "I drink oat milk."))
	assert.Equal(t, abi.StatusQueued, receipt.Status)
	assert.Equal(t, abi.NativeIDsTransient, receipt.NativeIDsKind)
	assert.Equal(t, "platform_add", p.routes())
}

func TestFailuresBehindAndBeforeStoring(t *testing.T) {
	event := turn("e1", "I drink oat milk.", "Noted.", "I live in Lisbon.")
	for _, c := range []struct {
		name, provider string
		faults         mem0.Faults
		code           abi.Code // of the error; "" for a receipt
		reason         string
		status         abi.WriteStatus
		warning        string
		stored         int
	}{
		{"the LLM is down", "mem0", mem0.Faults{LLM: "provider_unavailable"}, abi.CodeUnavailable,
			"provider_unavailable", "", "", 0},
		{"the LLM limits mem0", "mem0", mem0.Faults{LLM: "provider_rate_limited"}, abi.CodeRateLimited,
			"provider_rate_limited", "", "", 0},
		{"the LLM refuses mem0's key", "mem0", mem0.Faults{LLM: "provider_auth_failed"}, abi.CodeUnavailable,
			"provider_auth_failed", "", "", 0},
		{"the LLM answers strings in its list", "mem0", mem0.Faults{LLMAnswer: "string_items"}, abi.CodeBackend,
			"unknown", "", "", 0},
		{"502 behind storing", "mem0", mem0.Faults{AfterStoring: true}, "", "", abi.StatusCommitted,
			"stored_despite_error", 2},
		{"502 behind storing, verbatim", "simple_rag", mem0.Faults{AfterStoring: true}, "", "", abi.StatusCommitted,
			"stored_despite_error", 3},
		{"502 at the first message", "simple_rag", mem0.Faults{FailMessage: 1}, abi.CodeBackend, "unknown", "", "", 0},
		{"502 at the third message", "simple_rag", mem0.Faults{FailMessage: 3}, "", "", abi.StatusPartial,
			"stored_despite_error", 2},
		{"the embedder is down, verbatim", "simple_rag", mem0.Faults{Embedder: "provider_unavailable"},
			abi.CodeUnavailable, "provider_unavailable", "", "", 0},
		{"the database is down", "mem0", mem0.Faults{Database: "dead"}, "", "", abi.StatusUncertain, "write_in_doubt",
			0},
		{"a proxy answers in mem0's place", "mem0", mem0.Faults{Before: proxy}, "", "", abi.StatusUncertain,
			"write_in_doubt", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, server := ossRig(t, c.provider, "", mem0.Options{})
			r.setUp()
			server.Set(c.faults)
			receipt, err := r.record(event)
			assert.Len(t, server.Texts(""), c.stored)
			if c.code != "" {
				e := abi.AsError(err)
				require.Error(t, err)
				assert.Equal(t, c.code, e.Code)
				assert.Equal(t, c.reason, e.Reason)
				assert.True(t, e.NothingStored)
				require.NotNil(t, e.Native)
				assert.Equal(t, int64(502), *e.Native.Status)
				assert.Contains(t, e.Native.Body, `"request_id"`)
				assert.Contains(t, e.Message, "(request 1a2b3c4d)")
				assert.NotEmpty(t, e.Hint)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.status, receipt.Status)
			warns(t, receipt.Warnings, c.warning)
			if c.status != abi.StatusUncertain {
				assert.Len(t, receipt.NativeIDs, c.stored)
			}
		})
	}
}

// proxy answers adds like a reverse proxy whose server does not answer.
func proxy(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost || r.URL.Path != "/memories" {
		return false
	}
	w.WriteHeader(http.StatusGatewayTimeout)
	_, _ = w.Write([]byte("<html>504 Gateway Time-out</html>"))
	return true
}

func TestPartialVerbatimWriteSendsOnlyWhatIsMissing(t *testing.T) {
	event := turn("e1", "ok", "ok", "My cat is called Zorvex.", "ok", "And my dog Flum.")
	for fail := 2; fail <= 5; fail++ {
		r, server := ossRig(t, "simple_rag", "", mem0.Options{})
		server.Set(mem0.Faults{FailMessage: fail})
		receipt := r.mustRecord(event)
		require.Equal(t, abi.StatusPartial, receipt.Status)
		require.Len(t, server.Texts(""), fail-1)
		server.Set(mem0.Faults{})
		answer := r.findEvent("e1", longAgo, receipt.Markers...)
		require.Equal(t, "partial", answer.Found)
		require.Len(t, answer.Missing, 5-(fail-1))
		r.Resume = &abi.Resume{Missing: answer.Missing, Markers: receipt.Markers}
		assert.Equal(t, abi.StatusCommitted, r.mustRecord(event).Status)
		assert.Equal(t, []string{"ok", "ok", "My cat is called Zorvex.", "ok", "And my dog Flum."}, server.Texts(""))
		assert.Equal(t, "assistant", server.Rows()[3]["role"], "of equal messages the later one was missing")
		assert.Equal(t, "present", r.findEvent("e1", longAgo).Found)
	}
	t.Run("a resumed write that fails is an error: what is stored already does not make it whole", func(t *testing.T) {
		r, server := ossRig(t, "mem0", "", mem0.Options{})
		server.Set(mem0.Faults{Ghosts: func(fact string) bool { return strings.Contains(fact, "Flum") }})
		pets := turn("e1", "My cat is called Zorvex. My dog is called Flum.")
		markers := r.mustRecord(pets).Markers
		server.Set(mem0.Faults{FailMessage: 1})
		r.Resume = &abi.Resume{Missing: markers, Markers: markers}
		_, err := r.record(pets)
		assert.Equal(t, abi.CodeBackend, abi.CodeOf(err))
		assert.Equal(t, "partial", r.findEvent("e1", longAgo, markers...).Found)
	})
	t.Run("nothing of what is missing is in the event", func(t *testing.T) {
		r, _ := ossRig(t, "simple_rag", "", mem0.Options{})
		r.Resume = &abi.Resume{Missing: []string{"part 0123456789ab"}}
		_, err := r.record(event)
		assert.Equal(t, abi.CodeConflict, abi.CodeOf(err))
		assert.NotContains(t, r.routes(), "add")
	})
}

func TestFindEventProvesOrSaysThatItCannot(t *testing.T) {
	many := func(n int) (*rig, *mem0.OSS) {
		r, server := ossRig(t, "simple_rag", `"verify_writes":false`, mem0.Options{})
		for i := range n / 50 {
			lines := make([]string, 50)
			for j := range lines {
				lines[j] = strings.Repeat("row ", i+1) + strings.Repeat("x", j+1)
			}
			r.mustRecord(turn("e"+strings.Repeat("i", i+1), lines...))
		}
		r.forget()
		return r, server
	}
	t.Run("absent only when an abandoned add can no longer land", func(t *testing.T) {
		r, _ := ossRig(t, "mem0", "", mem0.Options{})
		answer := r.findEvent("e1", justNow)
		assert.Equal(t, "unknown", answer.Found)
		assert.Equal(t, int64(1799_000), *answer.RetryAfterMS)
		assert.Equal(t, "absent", r.findEvent("e1", longAgo).Found)
	})
	t.Run("absent, too, when the gateway has started since", func(t *testing.T) {
		for uptime, want := range map[time.Duration]string{0: "unknown", time.Hour: "unknown",
			time.Millisecond: "absent"} {
			options := allOptions()
			options.Gateway.Uptime = uptime
			r, _ := ossRig(t, "mem0", "", options)
			assert.Equal(t, want, r.findEvent("e1", justNow).Found, "%s", uptime)
		}
	})
	t.Run("below 1000 rows the list decides, the search may miss", func(t *testing.T) {
		r, server := many(950)
		server.Set(mem0.Faults{Approximate: true})
		assert.Equal(t, "absent", r.findEvent("never", longAgo).Found)
		assert.Equal(t, "present", r.findEvent("ei", longAgo).Found)
	})
	t.Run("from 1000 rows on an approximate search proves nothing", func(t *testing.T) {
		r, server := many(1050)
		server.Set(mem0.Faults{Approximate: true})
		answer := r.findEvent("never", longAgo)
		assert.Equal(t, "unknown", answer.Found)
		server.Set(mem0.Faults{})
		assert.Equal(t, "unknown", r.findEvent("never", longAgo).Found, "nothing found by an index that may miss")
		assert.Equal(t, "present", r.findEvent("e"+strings.Repeat("i", 21), longAgo).Found,
			"behind the list's end, found whole by search")
	})
	t.Run("an exact index proves absence by itself", func(t *testing.T) {
		r, _ := ossRig(t, "mem0", "", mem0.Options{Exact: true})
		r.setUp()
		r.forget()
		assert.Equal(t, "absent", r.findEvent("never", longAgo).Found)
		assert.Equal(t, "search", r.routes())
	})
	t.Run("the embedder is down: the list answers", func(t *testing.T) {
		r, server := ossRig(t, "mem0", "", mem0.Options{})
		r.mustRecord(turn("e1", "I drink oat milk."))
		server.Set(mem0.Faults{Embedder: "provider_unavailable"})
		assert.Equal(t, "present", r.findEvent("e1", longAgo).Found)
		assert.Equal(t, "absent", r.findEvent("e2", longAgo).Found)
	})
	t.Run("the database is down: an error, not an absence", func(t *testing.T) {
		r, server := ossRig(t, "mem0", "", mem0.Options{})
		server.Set(mem0.Faults{Database: "dead"})
		_, err := sdktest.Do(r.Host, abi.OpFindEvent, maria, withBackend(findEvent),
			&abi.FindEventRequest{EventID: "e1", SentAt: longAgo})
		assert.Equal(t, abi.CodeUnavailable, abi.CodeOf(err))
	})
	t.Run("an event called * is that event", func(t *testing.T) {
		r, _ := ossRig(t, "mem0", "", mem0.Options{})
		r.mustRecord(turn("e1", "I drink oat milk."))
		assert.Equal(t, "absent", r.findEvent("*", longAgo).Found)
		r.mustRecord(turn("*", "I live in Lisbon."))
		assert.Len(t, r.findEvent("*", longAgo).NativeIDs, 1)
	})
}

func TestPlatformJobs(t *testing.T) {
	type end struct {
		name   string
		change func(*mem0.Platform)
		status abi.ReadinessStatus
		in     func(abi.ReadinessEventIDs) []string
		found  string
	}
	for _, c := range []end{
		{"succeeds", func(*mem0.Platform) {}, abi.ReadinessReady, nil, "present"},
		{"is still at work, by a status that is not documented", func(p *mem0.Platform) {
			p.Looks = 9
		}, abi.ReadinessPending, func(e abi.ReadinessEventIDs) []string {
			return e.Pending
		}, "unknown"},
		{"never ends", func(p *mem0.Platform) {
			p.NeverEnd = true
		}, abi.ReadinessPending, func(e abi.ReadinessEventIDs) []string {
			return e.Pending
		}, "unknown"},
		{"fails", func(p *mem0.Platform) {
			p.FailJobs = "LLM quota"
		}, abi.ReadinessDegraded, func(e abi.ReadinessEventIDs) []string {
			return e.Failed
		}, "absent"},
		{"is unknown to the platform", func(p *mem0.Platform) {
			p.LoseJobs = true
		}, abi.ReadinessDegraded, func(e abi.ReadinessEventIDs) []string {
			return e.Lost
		}, "absent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			platform := &mem0.Platform{Token: key}
			r := newRig(t, "mem0", `"settle_ms":0`, platform)
			receipt := r.mustRecord(turn("e 1", "I drink oat milk."))
			c.change(platform)
			ready, err := sdktest.Do(r.Host, abi.OpReadiness, maria, withBackend(readiness),
				&abi.ReadinessMarkers{Markers: receipt.Markers})
			require.NoError(t, err)
			assert.Equal(t, c.status, ready.Status)
			if c.in != nil {
				assert.Equal(t, []string{"e 1"}, c.in(ready.EventIDs), "%+v", ready)
			}
			assert.Equal(t, c.found, r.findEvent("e 1", longAgo, receipt.Markers...).Found)
		})
	}
	t.Run("succeeds with nothing stored", func(t *testing.T) {
		r := newRig(t, "mem0", `"settle_ms":0`, &mem0.Platform{Token: key})
		receipt := r.mustRecord(turn("e1", "Which milk do I like?"))
		ready, err := sdktest.Do(r.Host, abi.OpReadiness, maria, withBackend(readiness),
			&abi.ReadinessMarkers{Markers: receipt.Markers})
		require.NoError(t, err)
		assert.Equal(t, []string{"e1"}, ready.EventIDs.Empty)
	})
	t.Run("a marker that got lost is found among the account's jobs", func(t *testing.T) {
		platform := &mem0.Platform{Token: key, Looks: 2}
		r := newRig(t, "mem0", "", platform)
		r.mustRecord(turn("e1", "I drink oat milk."))
		assert.Equal(t, "unknown", r.findEvent("e1", longAgo).Found, "still at work")
		r.findEvent("e1", longAgo)
		assert.Equal(t, "present", r.findEvent("e1", longAgo).Found)
		assert.Equal(t, "absent", r.findEvent("e2", longAgo).Found)
		assert.Equal(t, "unknown", r.findEvent("e2", justNow).Found)
	})
	t.Run("settles for a while behind its end", func(t *testing.T) {
		r := newRig(t, "mem0", `"settle_ms":600000`, &mem0.Platform{Token: key})
		receipt := r.mustRecord(turn("e1", "I drink oat milk."))
		ready, err := sdktest.Do(r.Host, abi.OpReadiness, maria, withBackend(readiness),
			&abi.ReadinessMarkers{Markers: receipt.Markers})
		require.NoError(t, err)
		assert.Equal(t, abi.ReadinessPending, ready.Status)
	})
	t.Run("a failed deletion is no reset", func(t *testing.T) {
		platform := &mem0.Platform{Token: key, FailJobs: "broken"}
		r := newRig(t, "mem0", "", platform)
		var receipt *abi.ResetReceipt
		for range 2 {
			var err error
			receipt, err = sdktest.Do(r.Host, abi.OpResetScope, maria, withBackend(resetScope), &abi.Empty{})
			require.NoError(t, err)
		}
		assert.Equal(t, abi.ResetFailed, receipt.Status)
		warns(t, receipt.Warnings, "job_failed")
	})
}

func TestResetVerifies(t *testing.T) {
	reset := func(r *rig) *abi.ResetReceipt {
		t.Helper()
		receipt, err := sdktest.Do(r.Host, abi.OpResetScope, maria, withBackend(resetScope), &abi.Empty{})
		require.NoError(t, err)
		return receipt
	}
	full := func(o mem0.Options, more string) (*rig, *mem0.OSS) {
		r, server := ossRig(t, "simple_rag", more, o)
		r.mustRecord(turn("e1", "a", "b", "c", "d", "e"))
		return r, server
	}
	t.Run("an old server deletes some at a time", func(t *testing.T) {
		r, server := full(mem0.Options{}, "")
		server.Set(mem0.Faults{DeleteAtMost: 2})
		assert.Equal(t, abi.ResetInProgress, reset(r).Status)
		assert.Equal(t, abi.ResetInProgress, reset(r).Status)
		assert.Equal(t, abi.ResetDone, reset(r).Status)
		assert.Empty(t, server.Texts(""))
	})
	t.Run("a deletion beside another answers 502 and is done", func(t *testing.T) {
		r, server := full(mem0.Options{}, "")
		server.Set(mem0.Faults{DeleteFails: true})
		assert.Equal(t, abi.ResetDone, reset(r).Status)
	})
	t.Run("without admin rights one by one", func(t *testing.T) {
		server := mem0.New(mem0.Options{AdminKey: "other", Bearer: map[string]string{key: "user"}})
		r := newRig(t, "simple_rag", `"auth":"bearer"`, server)
		r.mustRecord(turn("e1", "a", "b", "c"))
		receipt := reset(r)
		assert.Equal(t, abi.ResetDone, receipt.Status)
		warns(t, receipt.Warnings, "reset_without_admin")
		assert.Empty(t, server.Texts(""))
	})
	t.Run("a wrong key is an error", func(t *testing.T) {
		r := newRig(t, "mem0", "", mem0.New(mem0.Options{AdminKey: "other"}))
		_, err := sdktest.Do(r.Host, abi.OpResetScope, maria, withBackend(resetScope), &abi.Empty{})
		assert.Equal(t, abi.CodeUnauthenticated, abi.CodeOf(err))
	})
}
