package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/text/jsonpointer"
)

// injected is a fault between host and backend.
type injected struct {
	name string
	// status is of the answer; 0 for one that has none of its own.
	status     int
	retryAfter string
	// codes are what the fault may become.
	codes []abi.Code
	// unknown: the fault hides whether a write was done, so its receipt may say uncertain.
	unknown bool
	// within is the operation's deadline.
	within time.Duration
}

// faults are those of the contract.
func faults() []injected {
	const call = 20 * time.Second
	codes := func(list ...abi.Code) []abi.Code { return list }
	return []injected{
		{"400", 400, "", codes(abi.CodeBackend, abi.CodeInvalidArgument), false, call},
		{"401", 401, "", codes(abi.CodeUnauthenticated, abi.CodeDenied), false, call},
		{"404", 404, "", codes(abi.CodeNotFound, abi.CodeBackend), false, call},
		{"409", 409, "", codes(abi.CodeConflict, abi.CodeBackend), false, call},
		{"422", 422, "", codes(abi.CodeBackend, abi.CodeInvalidArgument), false, call},
		{"429", 429, "7", codes(abi.CodeRateLimited), false, call},
		{"500", 500, "", codes(abi.CodeBackend, abi.CodeUnavailable), true, call},
		{"502", 502, "", codes(abi.CodeUnavailable, abi.CodeBackend), true, call},
		{faultInside, 200, "", codes(abi.CodeBackend, abi.CodeUnavailable, abi.CodeInvalidArgument, abi.CodeNotFound),
			true, call},
		{faultTruncated, 200, "", codes(abi.CodeBackend), true, call},
		{faultProse, 200, "", codes(abi.CodeBackend, abi.CodeUnavailable), true, call},
		{faultSlow, 0, "", codes(abi.CodeTimeout), true, 250 * time.Millisecond},
		{faultDropped, 0, "", codes(abi.CodeUnavailable), true, call},
	}
}

const (
	faultInside    = "error inside a 200"
	faultTruncated = "truncated JSON"
	faultProse     = "prose in a 200"
	faultSlow      = "slow"
	faultDropped   = "dropped connection"
)

// marker is in every injected answer, so that the error shows where it came from.
const marker = "kit-injected-fault"

var errDropped = errors.New("conformance kit: connection reset by peer")

// injection is a fault at work. It reports whether it met a call that it applies to.
type injection struct {
	injected
	kit   *kit
	route string // only this one; "" for all
	hits  int
	// changes counts those of the hits that are no reads.
	changes int
	// mustFind is what must be found once the backend is well again; without it what came of the operation is wrong.
	mustFind *plantedFact
	// lastAnswer is what was answered last.
	lastAnswer []byte
}

// intercept implements host.Interceptor.
func (f *injection) intercept(ctx context.Context, call host.NativeCall, send next) (host.NativeAnswer, error) {
	if f.route != "" && call.Route != f.route {
		return send(ctx)
	}
	met := f.hits
	defer func() {
		if call.Class != abi.ClassRead {
			f.changes += f.hits - met
		}
	}()
	switch {
	case f.name == faultSlow:
		f.hits++
		<-ctx.Done()
		return host.NativeAnswer{}, ctx.Err()
	case f.name == faultDropped:
		f.hits++
		return host.NativeAnswer{}, errDropped
	case call.Protocol == "bolt" && f.status == 200:
		return send(ctx) // Bolt has failures and no such thing
	case call.Protocol == "bolt":
		f.hits++
		return host.NativeAnswer{}, &host.NativeFailure{Code: boltCode(f.status), Message: marker}
	}
	f.hits++
	answer := host.NativeAnswer{Status: f.status, Header: http.Header{"Content-Type": {"application/json"}}}
	if f.retryAfter != "" {
		answer.Header.Set("Retry-After", f.retryAfter)
	}
	switch f.name {
	case faultInside:
		answer.Body = f.errorInside(call)
	case faultTruncated:
		answer.Body = truncated(ctx, call, send)
	case faultProse:
		answer.Body = []byte("I am sorry, I cannot help with that (" + marker + ").")
	default:
		answer.Body = []byte(`{"error": "` + marker + `", "detail": "` + marker + `", "message": "` + marker + `"}`)
	}
	f.lastAnswer = answer.Body
	return answer, nil
}

// repeats reports whether an error's words hold those of an answer: the marker, or for a target's own error body a text
// from it.
func repeats(native string, said []byte) bool {
	if strings.Contains(native, marker) || native != "" && strings.Contains(string(said), native) {
		return true
	}
	body, ok := decode(said)
	return ok && anywhere(body, func(v any) bool {
		text, ok := v.(string)
		return ok && len(text) > 3 && strings.Contains(native, text)
	})
}

// errorInside is an error in a body whose status says that all is well.
func (f *injection) errorInside(call host.NativeCall) []byte {
	for _, route := range []string{call.Route, ""} {
		if body, ok := f.kit.target.ErrorBodies[route]; ok {
			return []byte(body)
		}
	}
	if request, ok := decode(call.Body); ok {
		if id, ok := jsonpointer.Find(request, "/id"); ok {
			if _, rpc := jsonpointer.Find(request, "/jsonrpc"); rpc {
				same, _ := json.Marshal(id)
				return fmt.Appendf(nil, `{"jsonrpc": "2.0", "id": %s, "result": {"isError": true, "content": [{"type": "text", "text": %q}]}}`, same, marker)
			}
		}
	}
	return []byte(`{"error": {"code": "kit", "message": "` + marker + `"}, "detail": "` + marker + `"}`)
}

// truncated is half of what the backend answers to a read; a write is not sent, and gets half an answer nevertheless.
func truncated(ctx context.Context, call host.NativeCall, send next) []byte {
	if call.Class == abi.ClassRead {
		if answer, err := send(ctx); err == nil {
			if v, ok := decode(answer.Body); ok && v != nil {
				if body := strings.TrimSpace(string(answer.Body)); len(body) > 3 {
					return []byte(body[:len(body)/2])
				}
			}
		}
	}
	return []byte(`{"results": [{"id": "` + marker + `", "mem`)
}

// boltCode is the failure of a Bolt server that corresponds to a status.
func boltCode(status int) string {
	switch status {
	case 401:
		return "Neo.ClientError.Security.Unauthorized"
	case 429, 502:
		return "Neo.TransientError.General.DatabaseUnavailable"
	case 500:
		return "Neo.DatabaseError.General.UnknownError"
	default:
		return "Neo.ClientError.Statement.SyntaxError"
	}
}

// checkErrors is clause 7.
func checkErrors(b *bench) {
	s := b.scope("errors", "p")
	mark := b.wire.mark()
	p := b.plant(s)
	b.struckAll("record_event", "a turn that cannot be recorded is an error, never accepted", faults(),
		b.strikeRecord(s))
	b.struckAll("retrieve", "a question that cannot be asked is an error, never an empty result", faults(),
		b.strikeRetrieve(p))
	b.part("one_route", "when one of several calls of a question fails, the answer is an error or says that it is "+
		"degraded", func() outcome { return b.oneRoute(s) })
	b.struckAll("health", "health does not say ok while the backend fails",
		someFaults("401", "500", "502", faultTruncated, faultDropped),
		func(ctx context.Context, _ *injection) (string, error) {
			h, err := b.slot.Health(ctx)
			if err != nil {
				return "", err
			}
			if h.Status != abi.HealthOK {
				return "", nil
			}
			return "ok", nil
		})
	if slices.Contains(b.capabilities, abi.OpInventory) {
		b.struckAll("inventory", "an inventory that cannot be taken is an error, never an empty one",
			someFaults("500", faultTruncated, faultDropped), func(ctx context.Context, _ *injection) (string, error) {
				i, err := b.slot.Inventory(ctx, &abi.InventoryRequest{Scope: s})
				if err != nil || !i.Complete {
					return "", err
				}
				return "a complete inventory", nil
			})
	}
	erase := b.scope("erase", "p") // a reset that fails leaves its scope in a new generation
	if _, err := b.record(b.ctx, b.event(erase, b.kit.target.Probe.Wordings[0](b.kit.names.name()))); err != nil {
		b.part("reset_scope", "a reset that fails is never done", func() outcome {
			return refused("record_event", err)
		})
		return
	}
	b.struckAll("reset_scope", "a reset that fails is never done", someFaults("500", faultDropped),
		func(ctx context.Context, _ *injection) (string, error) {
			r, err := b.slot.ResetScope(ctx, erase)
			if err != nil || r.Status != abi.ResetDone {
				return "", err
			}
			return "done", nil
		})
	b.part("unknown", "a native query or mutation that the provider does not have is refused", func() outcome {
		return b.unknownNames(s)
	})
	b.part("usable", "when the backend is well again, all is as it was", func() outcome { return b.usable(p, mark) })
}

func someFaults(names ...string) []injected {
	return slices.DeleteFunc(faults(), func(f injected) bool { return !slices.Contains(names, f.name) })
}

// struckAll runs an operation under each fault, all of its native calls struck. do returns what went wrong without an
// error; an empty text is as good as an error.
func (b *bench) struckAll(op, words string, list []injected, do func(context.Context, *injection) (string, error)) {
	b.part(op, words, func() outcome {
		struckOnes := 0
		for _, f := range list {
			hit := &injection{injected: f, kit: b.kit}
			ctx, cancel := context.WithTimeout(b.ctx, f.within)
			var came string
			var err error
			b.wire.during(hit.intercept, func() { came, err = do(ctx, hit) })
			cancel()
			if hit.hits == 0 {
				continue
			}
			struckOnes++
			switch {
			case err != nil:
				if o := checkErrorType(op, f, hit, abi.AsError(err)); o != nil {
					return *o
				}
			case came != "" && !b.hasAllAccepted(hit):
				return failed("%s under %s came to %s", op, f.name, came)
			}
		}
		if struckOnes == 0 {
			return lacking("%s makes no native call: there is no backend that could fail", op)
		}
		return passed("%d faults, each a typed error", struckOnes)
	})
}

// checkErrorType checks an error against what its fault allows; nil when it is right.
func checkErrorType(op string, f injected, hit *injection, e *abi.Error) *outcome {
	bad := func(format string, args ...any) *outcome {
		o := failed("%s under %s: %s (got %v)", op, f.name, fmt.Sprintf(format, args...), e)
		return &o
	}
	allowed := f.codes
	bolt := e.Native != nil && e.Native.Status == nil
	if bolt && f.status >= 400 { // a failure of Bolt is what its code says, which has fewer kinds
		allowed = append(slices.Clone(f.codes), abi.CodeBackend, abi.CodeUnavailable)
	}
	switch {
	case e.Code == abi.CodeInternal:
		return bad("internal, want one of %v", allowed)
	case !slices.Contains(allowed, e.Code):
		return bad("want one of %v", allowed)
	case e.NothingStored && f.unknown:
		return bad("nothing_stored, and it cannot be known whether the write was done")
	case !e.Retryable && (e.Code == abi.CodeUnavailable || e.Code == abi.CodeTimeout || e.Code == abi.CodeRateLimited):
		return bad("retryable is false, and it can pass")
	case e.Retryable && op != abi.OpRecordEvent && slices.Contains([]int{400, 401, 404, 422}, f.status) && !bolt:
		// A write can be recorded again after any error: the host looks before it sends again.
		return bad("retryable is true, and the same request is refused again")
	case strings.TrimSpace(e.Message) == "":
		return bad("message is empty")
	case f.name == faultSlow || f.name == faultDropped:
		return nil
	case e.Native == nil:
		return bad("native is missing: what the backend said is lost")
	case f.name == faultTruncated:
		if e.Native.Body == "" {
			return bad("native.body is empty")
		}
	case !repeats(e.Native.Body, hit.lastAnswer):
		return bad("native.body is not what the backend said: %q", short(e.Native.Body, 200))
	case f.status >= 400 && !bolt && *e.Native.Status != int64(f.status):
		return bad("native.status is %d, the backend said %d", *e.Native.Status, f.status)
	case f.retryAfter != "" && !bolt && (e.RetryAfterMS == nil || *e.RetryAfterMS != 7000):
		return bad("the backend said Retry-After: %s, and retry_after_ms is not 7000", f.retryAfter)
	}
	return nil
}

// hasAllAccepted reports whether everything that was accepted under a fault can be found. A fault that hit only reads,
// such as the calls of an embedding model, need not prevent a provider from storing a turn in the host's state.
func (b *bench) hasAllAccepted(hit *injection) bool {
	return hit.mustFind != nil && hit.changes == 0 && b.foundBy(hit.mustFind.scope, hit.mustFind.name)
}

// strikeRecord records a new turn under a fault. If the fault hides whether a write was done, the receipt may say so. A
// receipt that warns is right if the fault met no write and the turn is found later.
func (b *bench) strikeRecord(s abi.MemoryScope) func(context.Context, *injection) (string, error) {
	return func(ctx context.Context, hit *injection) (string, error) {
		name := b.kit.names.name()
		r, err := b.record(ctx, b.event(s, b.kit.target.Probe.Wordings[0](name)))
		if err != nil {
			return "", err
		}
		if hit.unknown && (r.Status == abi.StatusUncertain || r.Status == abi.StatusPartial) {
			return "", nil
		}
		if len(r.Warnings) > 0 {
			hit.mustFind = &plantedFact{scope: s, name: name}
		}
		return fmt.Sprintf("the receipt %s, warnings %q", r.Status, r.Warnings), nil
	}
}

// strikeRetrieve asks for what was planted. An answer is right if it holds that, says that it is degraded, and warns:
// the provider has another way to find it.
func (b *bench) strikeRetrieve(p *plantedFact) func(context.Context, *injection) (string, error) {
	return func(ctx context.Context, _ *injection) (string, error) {
		r, err := b.slot.Retrieve(ctx, &abi.RetrieveRequest{Query: b.kit.target.Probe.Question, Scope: p.scope,
			SessionID: b.session()})
		if err != nil {
			return "", err
		}
		state, warned := abi.ResultUnknown, false
		if r.Trace != nil {
			state, warned = r.Trace.ResultState, len(r.Trace.Warnings) > 0
		}
		if state == abi.ResultDegraded && warned && holds(r, p.name) {
			return "", nil
		}
		return fmt.Sprintf("a result (%s, %d items)", state, len(r.Evidence)), nil
	}
}

// unknownNames asks for what no provider has.
func (b *bench) unknownNames(s abi.MemoryScope) outcome {
	tries := map[string]func() error{
		abi.OpNativeQuery: func() error {
			_, err := b.slot.NativeQuery(b.ctx, &abi.NativeQuery{Scope: s, Name: "kit_none"})
			return err
		},
		abi.OpNativeMutation: func() error {
			r, err := b.slot.NativeMutation(b.ctx, &abi.NativeMutation{Scope: s, Name: "kit_none", Reason: "conformance kit"})
			if err == nil && r.Status == "rejected" {
				return abi.NewError(abi.CodeInvalidArgument, "rejected")
			}
			return err
		},
	}
	tried := 0
	for op, try := range tries {
		if !b.can(op) {
			continue
		}
		tried++
		switch code := abi.CodeOf(try()); code {
		case abi.CodeInvalidArgument, abi.CodeNotFound, abi.CodeUnsupported, abi.CodeDenied:
		case "":
			return failed("%s kit_none, which no provider has, is answered as if it existed", op)
		default:
			return failed("%s kit_none, which no provider has, is the error %s; want invalid_argument, not_found or unsupported",
				op, code)
		}
	}
	if tried == 0 {
		return notChecked("the provider has neither queries nor mutations")
	}
	return passed("refused")
}

// oneRoute strikes one route of a question at a time.
func (b *bench) oneRoute(s abi.MemoryScope) outcome {
	mark := b.wire.mark()
	if _, err := b.ask(s); err != nil {
		return refused("retrieve", err)
	}
	var routes []string
	for _, x := range b.wire.since(mark) {
		if !slices.Contains(routes, x.call.Route) {
			routes = append(routes, x.call.Route)
		}
	}
	if len(routes) < 2 {
		return notChecked("a question takes %d routes", len(routes))
	}
	for _, f := range someFaults("500", faultDropped) {
		for _, route := range routes {
			hit := &injection{injected: f, kit: b.kit, route: route}
			var r *abi.RetrieveResult
			var err error
			b.wire.during(hit.intercept, func() { r, err = b.ask(s) })
			switch {
			case hit.hits == 0:
			case abi.CodeOf(err) == abi.CodeInternal:
				return failed("%s at %s: %v", f.name, route, err)
			case err == nil && (r.Trace.ResultState != abi.ResultDegraded || len(r.Trace.Warnings) == 0):
				return failed("%s at %s: the answer is %s with %d warnings; want an error, or degraded and a warning",
					f.name, route, r.Trace.ResultState, len(r.Trace.Warnings))
			}
		}
	}
	return passed("struck one at a time: %v", routes)
}

// usable looks whether the faults left anything behind.
func (b *bench) usable(p *plantedFact, mark int) outcome {
	result, err := b.ask(p.scope)
	switch {
	case err != nil:
		return refused("retrieve", err)
	case p.found != nil && !holds(result, p.name):
		return failed("%s was told before, and is gone", p.name)
	}
	e := b.event(p.scope, b.kit.target.Probe.Wordings[0](b.kit.names.name()))
	hit := &injection{injected: someFaults("400")[0], kit: b.kit}
	b.wire.during(hit.intercept, func() { _, err = b.record(b.ctx, e) })
	taken := err == nil
	if hit.changes > 0 && taken { // one of which only reads failed is judged by struckAll
		return failed("record_event under 400 is accepted")
	}
	again, err := b.record(b.ctx, e)
	switch {
	case err != nil:
		return refused("record_event, once the backend takes it", err)
	case hit.hits > 0 && !taken && again.Duplicate:
		return failed("a turn that was refused with 400 is called a duplicate when it is recorded again")
	}
	if o := control(p); o != nil && o.verdict != NotApplicable {
		return *o
	}
	return passed("%d native calls in all", len(b.wire.since(mark)))
}
