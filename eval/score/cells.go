package score

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/rundir"
)

// cell is the content of one journal.
type cell struct {
	*rundir.Cell
	manifest *manifest
	// readings are first reads, by budget and probe; nil if none was made.
	readings [][]*reading
	// conversations are by budget and probe; nil if there was none, or if the simulator failed.
	conversations [][]*reading
	behaviour     *behaviourCounts
	recorded      []bool                     // by the number of the event
	failed        map[string]map[string]bool // events that were given up, by persona and id
	empty         map[[2]string]bool         // recorded events of which nothing was kept, by persona and id
	// waits have the result of each persona's last wait before a test session.
	waits     map[string]*waited
	closed    int
	wall      Wall
	readiness Readiness
	filter    map[string]int
	warnings  map[string]int
	writeErrs map[string]int
	// turns are the agent's. One that was answered again after an interruption counts once.
	turns   map[turn]*journal.Answer
	fan     FanOut
	sources int // of all items
	timing  timing
}

// waited is the result of a wait for memory.
type waited struct {
	outstanding int
	lost        map[string]bool // accepted events that failed later, or were lost
}

// turn is one turn of an agent.
type turn struct {
	probe  string
	budget int64
	number int
}

// manifest has the fields of a cell's sealed manifest.json that scoring needs.
type manifest struct {
	Provider      string `json:"provider"`
	ConditionKind string `json:"condition_kind"`
	Module        struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		SHA256  string `json:"sha256"`
	} `json:"module"`
	ABI        string          `json:"abi"`
	ConfigHash string          `json:"config_hash"`
	Profile    string          `json:"profile"`
	Config     json.RawMessage `json:"config"`
	Smokes     []SmokeLine     `json:"smokes"`
}

// reader reads the journals of a run.
type reader struct {
	*timeline
	folder  string
	budgets []int64 // ascending, 0 last
}

// cell reads one cell's journal and measures every retrieval in it. locate searches contexts for items, for providers
// that never say where items are shown.
//
// Errors: those of the journal's chain; invalid_argument for a journal of another pack, or with a head other than the
// sealed one, and for a context that does not match its hash.
func (r *reader) cell(info *rundir.Cell, locate bool) (*cell, error) {
	c := &cell{Cell: info, readings: make([][]*reading, len(r.budgets)), recorded: make([]bool, r.events),
		conversations: make([][]*reading, len(r.budgets)), behaviour: newBehaved(), filter: map[string]int{},
		failed: map[string]map[string]bool{}, empty: map[[2]string]bool{}, waits: map[string]*waited{},
		warnings: map[string]int{}, writeErrs: map[string]int{}, turns: map[turn]*journal.Answer{}}
	c.wall.Breaches = []string{}
	for i := range c.readings {
		c.readings[i], c.conversations[i] = make([]*reading, len(r.probes)), make([]*reading, len(r.probes))
	}
	path := filepath.Join(info.Folder(r.folder), journal.Name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err := c.readManifest(r.folder); err != nil {
		return nil, err
	}
	w := &walk{reader: r, cell: c, locate: locate, last: map[string]*repeatedReads{}, pending: map[sessionKey]bool{},
		late: map[int]bool{}}
	head := ""
	for line, err := range journal.Read(path) {
		var cut *journal.CutOff
		if errors.As(err, &cut) { // the next resumption removes it
			break
		}
		if err == nil {
			err = w.line(&line.Line)
		}
		if err != nil {
			return nil, err
		}
		head = line.Hash()
	}
	if info.State == rundir.Complete && head != info.Head {
		return nil, wrong("%s: its head is %.12s, sealed was %.12s: lines were changed, or dropped from its end", path,
			head, info.Head).WithReason("chain")
	}
	c.readiness.TimedOut, c.readiness.PendingProbes = len(w.pending), len(w.late)
	return c, nil
}

func (c *cell) readManifest(folder string) error {
	text, err := os.ReadFile(filepath.Join(c.Folder(folder), "manifest.json"))
	if errors.Is(err, os.ErrNotExist) { // the cell did not get that far
		return nil
	}
	if err == nil {
		c.manifest = new(manifest)
		err = json.Unmarshal(text, c.manifest)
	}
	if err != nil {
		return wrong("cell %s/%d: manifest.json: %v", c.Label, c.Replicate, err)
	}
	return nil
}

// walk is the state of reading a cell's journal.
type walk struct {
	*reader
	*cell
	locate  bool
	last    map[string]*repeatedReads // by persona
	pending map[sessionKey]bool
	late    map[int]bool // probes of pending sessions
}

type sessionKey struct {
	persona string
	session int
}

// repeatedReads collects the reads of one probe at one budget.
type repeatedReads struct {
	probe  string
	budget int64
	reads  []map[string]bool // items
}

// line processes one line of the journal.
func (w *walk) line(l *journal.Line) error {
	switch l.Kind {
	case journal.KindBegin:
		if found := w.pack.Manifest.ContentSHA256; l.Begin.PackSHA256 != found {
			return wrong("cell %s/%d ran on a pack with the content %.12s, this one has %.12s", w.Label, w.Replicate,
				l.Begin.PackSHA256, found)
		}
	case journal.KindRecord:
		w.record(l.PersonaID, l.Record)
	case journal.KindReadiness:
		w.ready(l)
	case journal.KindProbe:
		return w.probed(l)
	case journal.KindFreshness:
		w.timing.fresh.add(l.Freshness)
	case journal.KindAnswer:
		w.turns[turn{l.Answer.ProbeID, l.Answer.Budget, l.Answer.Turn}] = l.Answer
	case journal.KindTranscript:
		return w.talked(l)
	case journal.KindFeedback:
		w.behaviour.passed(l.Feedback)
	case journal.KindNonceCheck:
		for i := range l.NonceCheck.Breaches {
			w.behaviour.late(&l.NonceCheck.Breaches[i])
		}
	case journal.KindCanary:
		w.wall.CanariesTried++
		w.wall.CanariesSkipped += int(yes(l.Canary.Status == abi.StatusSkippedReadOnly))
	case journal.KindCanaryCheck:
		if l.CanaryCheck.Error == nil {
			w.wall.CanariesChecked++
			w.wall.CanariesFound += int(yes(l.CanaryCheck.Found))
		}
	case journal.KindClosed:
		w.close(l)
	}
	return nil
}

func (w *walk) record(personaID string, r *journal.Record) {
	if r.Error != nil {
		w.writeErrs[string(r.Error.Code)]++
		if r.Failed {
			if w.failed[personaID] == nil {
				w.failed[personaID] = map[string]bool{}
			}
			w.failed[personaID][r.EventID] = true
		}
	} else {
		w.noteRecorded(personaID, r.EventID)
		if id := [2]string{personaID, r.EventID}; r.Status == abi.StatusNotRetained {
			w.empty[id] = true
		} else {
			delete(w.empty, id) // a resumed run recorded it again
		}
	}
	w.timing.record.add(r.IO)
	if r.Error == nil && !r.Duplicate {
		w.timing.records = append(w.timing.records, r.LatencyMS)
	}
}

// noteRecorded marks an event of the pack as recorded, once, even if a resumed run recorded it again.
func (w *walk) noteRecorded(personaID, eventID string) {
	person := w.byID[personaID]
	if person == nil {
		return
	}
	if e := person.events[eventID]; e != nil {
		w.recorded[e.number] = true
	}
}

func (w *walk) ready(l *journal.Line) {
	w.timing.ready.Operations++
	for i := range l.Readiness.Native {
		w.timing.ready.addRoute(&l.Readiness.Native[i])
	}
	if l.Readiness.Purpose != "test_session" {
		return
	}
	w.readiness.Waits++
	w.readiness.Errors += int(yes(l.Readiness.Error != nil))
	if l.Readiness.Outstanding() {
		w.pending[sessionKey{l.PersonaID, l.Session}] = true
	}
	w.waits[l.PersonaID] = w.waited(l.PersonaID, l.Readiness)
	for _, id := range l.Readiness.Events.Empty {
		w.empty[[2]string{l.PersonaID, id}] = true
	}
	w.timing.waits = append(w.timing.waits, l.Readiness.WaitedMS)
}

// waited is the result of a wait. If the memory says that events are outstanding, but not which, all recorded ones are.
func (w *walk) waited(personaID string, r *journal.Readiness) *waited {
	result := &waited{outstanding: len(r.Events.Pending) + len(r.Events.Unknown), lost: map[string]bool{}}
	if person := w.byID[personaID]; person != nil && result.outstanding == 0 && r.Outstanding() {
		for _, e := range person.events {
			result.outstanding += int(yes(w.recorded[e.number]))
		}
	}
	for _, list := range [][]string{r.Events.Failed, r.Events.Lost} {
		for _, id := range list {
			result.lost[id] = true
		}
	}
	return result
}

// lacks reports whether memory lacks an event that a probe is about: it was never accepted, or it was lost later.
func (w *walk) lacks(p *probe, personaID string) bool {
	last := w.waits[personaID]
	return p.needs(w.failed[personaID]) || last != nil && p.needs(last.lost)
}

// maxExamples limits lists of examples in metrics.json.
const maxExamples = 20

func (w *walk) close(l *journal.Line) {
	w.closed++
	switch l.Closed.Wall {
	case "clean":
		w.wall.Clean++
	case "breached":
		w.wall.Breached++
		w.wall.Breaches = append(w.wall.Breaches, fmt.Sprintf("%s, session %d: %s", l.PersonaID, l.Session,
			l.Closed.Detail))
	default:
		w.wall.Inconclusive++
	}
}

// probed processes one retrieval.
func (w *walk) probed(l *journal.Line) error {
	if w.excluded[l.Probe.ProbeID] {
		return nil
	}
	p, at := w.probe[l.Probe.ProbeID], slices.Index(w.budgets, l.Probe.Budget)
	if p == nil || at < 0 {
		return wrong("cell %s/%d, line %d: probe %q with budget %d is not one of the pack and the lab", w.Label,
			w.Replicate, l.N, l.Probe.ProbeID, l.Probe.Budget)
	}
	if l.Probe.Read > 1 {
		w.again(l, p, at)
		return nil
	}
	pending := w.pending[sessionKey{l.PersonaID, l.Session}]
	if pending {
		w.late[p.number] = true
	}
	if l.Probe.Error != nil {
		w.readings[at][p.number] = &reading{values: newValues(), err: string(l.Probe.Error.Code), pending: pending}
		delete(w.last, l.PersonaID)
		return nil
	}
	text, err := w.context(l.Probe.ContextSHA256)
	if err != nil {
		return err
	}
	r := &retrieval{evidence: l.Probe.Evidence, context: text, trace: l.Probe.Trace, locate: w.locate}
	if w.locate && slices.ContainsFunc(r.evidence, func(e abi.Evidence) bool { return e.Text == "" }) {
		if r.raw, err = rundir.Blobs(w.folder).Text(l.Probe.RawSHA256); err != nil {
			return err
		}
	}
	read := w.measure(p, r)
	read.pending, read.context, read.lacks = pending, l.Probe.ContextSHA256, w.lacks(p, l.PersonaID)
	w.readings[at][p.number] = read
	w.last[l.PersonaID] = &repeatedReads{l.Probe.ProbeID, l.Probe.Budget, []map[string]bool{itemSet(l.Probe.Evidence)}}
	w.count(p, l.Probe)
	return nil
}

// context reads a formatted context and verifies its hash.
func (w *walk) context(name string) (string, error) {
	text, err := rundir.Contexts(w.folder).Text(name)
	if err != nil || name == "" {
		return "", err
	}
	if fmt.Sprintf("%x", sha256.Sum256(text)) != name {
		return "", wrong("contexts/%.2s/%s was changed: its hash is another one", name, name).WithReason("chain")
	}
	return string(text), nil
}

// again processes a repeated read.
func (w *walk) again(l *journal.Line, p *probe, at int) {
	r := w.last[l.PersonaID]
	if r == nil || r.probe != l.Probe.ProbeID || r.budget != l.Probe.Budget || l.Probe.Error != nil {
		delete(w.last, l.PersonaID)
		return
	}
	if r.reads = append(r.reads, itemSet(l.Probe.Evidence)); len(r.reads) == 3 {
		w.readings[at][p.number].values[place["stability"]] =
			(jaccard(r.reads[0], r.reads[1]) + jaccard(r.reads[0], r.reads[2]) + jaccard(r.reads[1], r.reads[2])) / 3
	}
}

// itemSet returns the items of a retrieval, by native id, or by text if they have none.
func itemSet(evidence []abi.Evidence) map[string]bool {
	set := map[string]bool{}
	for i := range evidence {
		key := "id " + evidence[i].NativeID
		if evidence[i].NativeID == "" {
			key = "text " + evidence[i].Text
		}
		set[key] = true
	}
	return set
}

// jaccard is the share of two sets' elements that are in both; 1 for two empty sets.
func jaccard(a, b map[string]bool) float64 {
	both := 0
	for key := range a {
		both += int(yes(b[key]))
	}
	all := len(a) + len(b) - both
	if all == 0 {
		return 1
	}
	return float64(both) / float64(all)
}

// count counts what a retrieval reports about itself.
func (w *walk) count(p *probe, l *journal.Probe) {
	for i := range l.Evidence {
		n := len(l.Evidence[i].SourceEventIDs)
		w.fan.Items++
		w.sources += n
		w.fan.Max = max(w.fan.Max, n)
		switch {
		case n == 0:
			w.fan.None++
		case attributed(l.Evidence[i].SourceEventIDs) != nil:
			w.fan.Few++
		default:
			w.fan.Many++
		}
	}
	t := l.Trace
	if t == nil {
		return
	}
	if p.hasContext() {
		mode := string(t.FilterMode)
		if mode == "" {
			mode = "not said"
		}
		w.filter[mode]++
	}
	for _, warning := range t.Warnings {
		code, _, _ := strings.Cut(warning, ":")
		w.warnings[code]++
	}
	w.timing.retrieve.add(t.IO)
	w.timing.retrievals = append(w.timing.retrievals, latency{l.Budget, l.LatencyMS, t.BackendMS, t.PluginMS, t.HostMS})
}

// saysShown reports whether a journal has an item that says where it is shown. It can search for the raw text, because
// inside a JSON string the quotes would be escaped.
func saysShown(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, abi.WrapError(abi.CodeUnavailable, err.Error(), err)
	}
	defer f.Close()
	mark := []byte(`"shown":{`)
	b, kept := bufio.NewReaderSize(f, 1<<20), 0
	buffer := make([]byte, 1<<20)
	for {
		n, err := b.Read(buffer[kept:])
		if bytes.Contains(buffer[:kept+n], mark) {
			return true, nil
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, abi.WrapError(abi.CodeUnavailable, err.Error(), err)
		}
		end := kept + n
		kept = min(end, len(mark)-1)
		copy(buffer, buffer[end-kept:end])
	}
}

func wrong(format string, args ...any) *abi.Error {
	return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf(format, args...))
}
