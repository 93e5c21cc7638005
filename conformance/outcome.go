package conformance

import (
	"fmt"
	"strconv"

	"github.com/memhost/memhost/abi"
)

// outcome is the result of a check.
type outcome struct {
	verdict Verdict
	reason  string
	// lacks: the provider cannot do what the check is about. If the manifest declares that, the check is not
	// applicable.
	lacks bool
	// unconfirming: the check does not apply, which confirms no declaration about its clause.
	unconfirming bool
	// breach: the host refused the answer because it breaks the contract. That is counted in clause 14.
	breach bool
}

func passed(format string, args ...any) outcome {
	return outcome{verdict: Pass, reason: fmt.Sprintf(format, args...)}
}

func failed(format string, args ...any) outcome {
	return outcome{verdict: Fail, reason: fmt.Sprintf(format, args...)}
}

func pending(format string, args ...any) outcome {
	return outcome{verdict: Pending, reason: fmt.Sprintf(format, args...)}
}

func inconclusive(format string, args ...any) outcome {
	return outcome{verdict: Inconclusive, reason: fmt.Sprintf(format, args...)}
}

// foundOut is not applicable by what the kit saw, declared or not.
func foundOut(format string, args ...any) outcome {
	return outcome{verdict: NotApplicable, reason: fmt.Sprintf(format, args...)}
}

// notChecked is not applicable for a reason that says nothing of the clause as a whole, such as a call too few.
func notChecked(format string, args ...any) outcome {
	return outcome{verdict: NotApplicable, reason: fmt.Sprintf(format, args...), unconfirming: true}
}

// lacking is an inability that the manifest has to declare.
func lacking(format string, args ...any) outcome {
	return outcome{verdict: Inconclusive, reason: fmt.Sprintf(format, args...), lacks: true}
}

// refused is an operation that failed and should not have.
func refused(op string, err error) outcome {
	e := abi.AsError(err)
	said := ""
	if e.Native != nil {
		said = "; the backend said " + strconv.Quote(short(e.Native.Body, 200))
	}
	o := failed("%s: %v%s", op, err, said)
	o.breach = e.Reason == abi.ReasonContractBreach
	return o
}

// part runs one check and puts its verdict beside what the manifest declares of it. A declaration never excuses a
// failure, and one that the check disproves is a failure itself.
func (b *bench) part(name, words string, check func() outcome) outcome {
	misses := b.wire.misses()
	o := check()
	b.note(name, words, o, b.wire.misses() > misses)
	return o
}

// note keeps the verdict of a part. missed is set if the backend left a call unanswered while the part ran.
func (b *bench) note(name, words string, o outcome, missed bool) {
	if b.ctx.Err() != nil {
		return // after the run was cancelled, what was seen proves nothing about the provider
	}
	// Clause 14 fails for it. One that is met only after clause 14 fails the clause that meets it.
	if o.breach && (b.report.Number < answersClause || b.report.Number > answersClause && len(b.kit.breaches) > 0) {
		b.kit.breaches = append(b.kit.breaches, fmt.Sprintf("clause %d, %s: %s", b.report.Number, name, o.reason))
		o.verdict, o.reason = Inconclusive, "the answer breaks the contract (clause 14): "+short(o.reason, 200)
	}
	p := PartReport{Name: name, Words: words, Verdict: o.verdict, Reason: o.reason}
	for _, d := range b.declared {
		if d.Clause == int64(b.report.Number) && d.Part == name {
			p.Declared = d.Because
		}
	}
	switch {
	case o.lacks && (p.Declared != "" || b.report.Declared != ""):
		p.Verdict = NotApplicable
	case o.lacks:
		p.Reason += fmt.Sprintf(`. If it is meant to be so, declare it in the manifest: conformance.not_applicable `+
			`{"clause": %d, "part": %q, "because": ...}`, b.report.Number, name)
	case p.Declared != "" && o.verdict == Pass:
		p.Verdict, p.Reason = Fail, "the manifest declares this not applicable, and it is: "+o.reason
	}
	if p.Verdict == Fail {
		p.Resembles = resembles(b.report.Number, name, o.reason)
	}
	if missed {
		b.unreachableParts = append(b.unreachableParts, len(b.report.Parts))
	}
	b.confirmed = b.confirmed || p.Verdict == NotApplicable && !o.unconfirming
	b.report.Parts = append(b.report.Parts, p)
}

// outage reports whether the backend is down. It is called if a part could not reach the backend: then such parts prove
// nothing about the provider, and are inconclusive.
func (b *bench) outage() error {
	if len(b.unreachableParts) == 0 || b.ctx.Err() != nil {
		return nil
	}
	b.wire.set(nil)
	h, err := b.slot.Health(b.ctx)
	switch {
	case err != nil && abi.CodeOf(err) != abi.CodeUnavailable && abi.CodeOf(err) != abi.CodeTimeout:
		return nil // the backend answers
	case err == nil && h.Status != abi.HealthUnavailable:
		return nil
	case err == nil:
		err = abi.NewError(abi.CodeUnavailable, "health says that the backend is unavailable")
	}
	for _, i := range b.unreachableParts {
		p := &b.report.Parts[i]
		if p.Verdict == Fail {
			p.Verdict, p.Resembles = Inconclusive, nil
			p.Reason = "the backend is not there any more: " + p.Reason
		}
	}
	return err
}

// settle decides the clause by its parts.
func (b *bench) settle() {
	c := b.report
	c.Verdict = NotApplicable
	for _, p := range c.Parts {
		if p.Verdict.gravity() > c.Verdict.gravity() {
			c.Verdict = p.Verdict
		}
	}
	switch {
	case c.Declared == "":
	case b.confirmed && c.Verdict.Green():
		c.Verdict = NotApplicable
	case !b.confirmed && c.Verdict == Pass:
		c.Verdict = Fail
		c.Parts = append(c.Parts, PartReport{Name: "declared", Words: "what the manifest declares of this clause holds",
			Verdict: Fail,
			Reason:  "the manifest declares it not applicable (" + c.Declared + "), and every part of it applies"})
	}
}
