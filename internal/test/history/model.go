package history

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// model is what one scope does when its operations come one after another.
type model struct {
	scope string
	index map[string]byte // of an event among those of the scope, from 1
	names []string
}

// state is a scope between two operations. It is comparable: two orders that lead to equal states are one.
type state struct {
	// modes has a bit for each mode that the scope may have (writable, readOnly); open counts operations without a known
	// outcome that may still set them.
	modes uint8
	open  [2]uint8
	// leaky: SetMode said that a write may still come.
	leaky bool
	// providers has a rune for each provider that may serve, openSwaps for each that a swap without a known outcome may
	// still make serve.
	providers, openSwaps string
	// generation of the scope is the least that it can be; openResets may still raise it.
	generation int64
	openResets int64
	// events has the marks of each event, by its index less 1.
	events string
	// list has the index of each event that is known to be in the scope's log, in the log's order.
	list string
}

const (
	writable = 1 << iota
	readOnly
)

// The marks of an event.
const (
	posted0   = 1 << iota // the backend has part 0
	posted1               // and part 1
	perhaps               // a call whose outcome is not known may have recorded it, or may still
	recorded              // the ledger has it
	notListed             // it was recorded without the guest's own log: found in the backend after a doubt
)

// step is an operation, or an end of an open one, as the checker takes it.
type step struct {
	Op
	closes bool // the end of an open SetMode or Swap: from now on it has happened or never will
	begins bool // the start of a SetMode: new writes are skipped, admitted ones continue
	event  byte
	events string // Op.Events by index
}

// history turns operations into steps. One that is open becomes two: from its call on it may have happened, and when it
// has an end, then never later. So nothing has to be guessed about it, and every order that a guess could give is
// allowed.
func (m *model) history(ops []Op) ([]porcupine.Operation, error) {
	var history []porcupine.Operation
	add := func(s *step, call, end int64) {
		history = append(history, porcupine.Operation{ClientId: s.Client, Input: s, Call: call, Return: end})
	}
	for _, op := range ops {
		if op.Return < op.Call {
			return nil, fmt.Errorf("scope %s: an operation ends before its call: %+v", m.scope, op)
		}
		s := &step{Op: op}
		if op.Event != "" {
			s.event = m.indexOf(op.Event)
		}
		var events strings.Builder
		for _, event := range op.Events {
			events.WriteByte(m.indexOf(event))
		}
		s.events = events.String()
		if len(m.names) > math.MaxUint8 {
			return nil, fmt.Errorf("scope %s has more than %d events", m.scope, math.MaxUint8)
		}
		if !op.Open {
			if op.Kind == SetMode && op.ReadOnly {
				begin := *s
				begin.begins = true
				add(&begin, op.Call, op.Return)
			}
			add(s, op.Call, op.Return)
			continue
		}
		add(s, op.Call, op.Call)
		if op.Kind == SetMode || op.Kind == Swap {
			end := *s
			end.closes = true
			add(&end, op.Return, op.Return)
		}
	}
	return history, nil
}

func (m *model) indexOf(event string) byte {
	if m.index[event] == 0 {
		m.names = append(m.names, event)
		m.index[event] = byte(len(m.names))
	}
	return m.index[event]
}

func (m *model) start() state {
	return state{modes: writable, providers: "\x00", generation: 1, events: string(make([]byte, len(m.names)))}
}

func (m *model) porcupine() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return m.start() },
		Step: func(before, input, _ any) (bool, any) { return m.apply(before.(state), input.(*step)) },
	}
}

// apply reports whether the scope can do a step, and how it is then.
func (m *model) apply(s state, op *step) (bool, state) {
	switch op.Kind {
	case Record:
		return s.record(op)
	case Post:
		return s.post(op)
	case Retrieve:
		return s.retrieve(op)
	case SetMode:
		return true, s.setMode(op, m.scope)
	case Swap:
		return true, s.swap(op)
	case Reset:
		return s.reset(op)
	}
	return false, s
}

func (s state) marks(event byte) byte { return s.events[event-1] }

func (s state) mark(event, marks byte) state {
	b := []byte(s.events)
	b[event-1] = marks
	s.events = string(b)
	return s
}

// may reports whether the scope can have a mode now.
func (s state) may(mode uint8) bool {
	return s.modes&mode != 0 || s.open[0] > 0 && mode == writable || s.open[1] > 0 && mode == readOnly
}

// serves reports whether a provider can be the one that serves now.
func (s state) serves(provider int) bool {
	return strings.ContainsRune(s.providers, rune(provider)) || strings.ContainsRune(s.openSwaps, rune(provider))
}

// at is the state in which an answer of a generation was given; false when it cannot be.
func (s state) at(generation int64) (bool, state) {
	if generation < s.generation || generation > s.generation+s.openResets {
		return false, s
	}
	if generation > s.generation {
		s.openResets -= generation - s.generation
		s = s.renew(generation)
	}
	return true, s
}

// renew begins a generation: it knows no event of the one before.
func (s state) renew(generation int64) state {
	s.generation, s.list = generation, ""
	s.events = string(make([]byte, len(s.events)))
	return s
}

func (s state) record(op *step) (bool, state) {
	if op.Outcome == Fresh {
		ok, at := s.at(op.Generation)
		if !ok || !s.may(writable) || !s.serves(op.Provider) {
			return false, s
		}
		s = at
	}
	marks := s.marks(op.event)
	switch op.Outcome {
	case Skipped:
		return s.may(readOnly), s
	case Unknown:
		return true, s.mark(op.event, marks|perhaps)
	case Repeated:
		return marks&(perhaps|recorded) != 0 && op.held(marks), s.mark(op.event, marks|recorded)
	}
	if marks&recorded != 0 || !op.held(marks) {
		return false, s
	}
	s.list += string([]byte{op.event})
	return true, s.mark(op.event, marks|recorded)
}

// held reports whether the backend has what an event was to leave there.
func (op *step) held(marks byte) bool { return op.Local || marks&(posted0|posted1) == posted0|posted1 }

func (s state) post(op *step) (bool, state) {
	marks := s.marks(op.event)
	part := byte(posted0 << op.Part)
	if op.Late {
		return true, s.mark(op.event, marks|part)
	}
	ok := s.may(writable) || s.leaky
	ok = ok && marks&(part|recorded) == 0 && (op.Part == 0 || marks&posted0 != 0)
	return ok, s.mark(op.event, marks|part)
}

// retrieve: the log that was read has the events of the list in the list's order. Others may be between them if a call
// whose outcome was not known may have put them there; then it is known where. Those that it lacks though the ledger
// has them will never come.
func (s state) retrieve(op *step) (bool, state) {
	ok, s := s.at(op.Generation)
	if !ok || !s.serves(op.Provider) {
		return false, s
	}
	events := []byte(s.events)
	rest := s.list
	seen := map[byte]bool{}
	for i := range len(op.events) {
		event := op.events[i]
		if seen[event] {
			return false, s
		}
		seen[event] = true
		if rest != "" && rest[0] == event {
			rest = rest[1:]
			continue
		}
		marks := events[event-1]
		if strings.IndexByte(rest, event) >= 0 || marks&(perhaps|recorded) == 0 || marks&notListed != 0 {
			return false, s
		}
		events[event-1] |= recorded
	}
	if rest != "" {
		return false, s
	}
	for i := range events {
		if events[i]&recorded != 0 && !seen[byte(i+1)] {
			events[i] |= notListed
		}
	}
	s.list, s.events = op.events, string(events)
	return true, s
}

func (s state) setMode(op *step, scope string) state {
	mode, other := uint8(writable), 0
	if op.ReadOnly {
		mode, other = readOnly, 1
	}
	switch {
	case op.closes:
		s.open[other]--
		s.modes |= mode
	case op.begins:
		s.modes |= mode
	case op.Open:
		s.open[other]++
	default:
		s.modes = mode
		s.leaky = op.ReadOnly && (op.All || slices.Contains(op.NotReady, scope))
	}
	return s
}

func (s state) swap(op *step) state {
	one := string(rune(op.Provider))
	switch {
	case op.closes:
		s.openSwaps = strings.Replace(s.openSwaps, one, "", 1)
		s.providers += one
	case op.Open:
		s.openSwaps += one
	default:
		s.providers = one
	}
	return s
}

func (s state) reset(op *step) (bool, state) {
	if op.Open {
		s.openResets++
		return true, s
	}
	ok, s := s.at(op.Generation - 1)
	if !ok {
		return false, s
	}
	return true, s.renew(op.Generation)
}

func (m *model) describe(s state) string {
	var b strings.Builder
	fmt.Fprintf(&b, "modes %b (open %v, leaky %t), providers %v (open %v), generation %d (open %d), log", s.modes, s.open,
		s.leaky, []rune(s.providers), []rune(s.openSwaps), s.generation, s.openResets)
	for i := range len(s.list) {
		fmt.Fprintf(&b, " %s", m.names[s.list[i]-1])
	}
	for i := range len(s.events) {
		if marks := s.events[i]; marks != posted0|posted1|recorded && marks != 0 {
			fmt.Fprintf(&b, "; %s %05b", m.names[i], marks)
		}
	}
	return b.String()
}

func (op *step) String() string {
	text := fmt.Sprintf("%12.6f-%12.6f client %d ", float64(op.Call)/1e9, float64(op.Return)/1e9, op.Client)
	switch op.Kind {
	case Record:
		text += fmt.Sprintf("record %s: %s", op.Event,
			[]string{"unknown", "fresh", "repeated", "skipped"}[op.Outcome])
	case Post:
		text += fmt.Sprintf("post %s/%d", op.Event, op.Part)
	case Retrieve:
		text += "retrieve: " + strings.Join(op.Events, " ")
	case SetMode:
		text += fmt.Sprintf("set read-only %t, not ready %v %t", op.ReadOnly, op.NotReady, op.All)
	case Swap:
		text += "swap"
	case Reset:
		text += "reset"
	}
	if op.Kind == Swap || op.Kind == Retrieve || op.Outcome == Fresh {
		text += fmt.Sprintf(", provider %d", op.Provider)
	}
	if op.Kind == Reset || op.Kind == Retrieve || op.Outcome == Fresh {
		text += fmt.Sprintf(", generation %d", op.Generation)
	}
	switch {
	case op.begins:
		text += ", begins"
	case op.closes:
		text += ", open until here"
	case op.Open:
		text += ", open"
	case op.Late:
		text += ", late"
	}
	return text
}
