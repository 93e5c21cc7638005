package score

import (
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/stats"
)

// Version is the version of the formats of metrics.json and timings.json.
const Version = 1

// Metrics is metrics.json: everything that does not depend on time. The same run produces the same bytes.
type Metrics struct {
	Metrics int  `json:"metrics"` // Version
	Run     Run  `json:"run"`
	Keys    Keys `json:"keys"`
	// Catalogue explains every metric that occurs, in the order of tables.
	Catalogue []Entry `json:"catalogue"`
	// Columns has the lab's providers in its order, followed by the references that are computed here: random,
	// evidence.
	Columns []Column `json:"columns"`
	// Primary is the comparison that was sealed before the run; nil if the lab has none.
	Primary *Family `json:"primary,omitempty"`
	// Exploratory has the same providers against the same reference on other metrics and budgets, each a separate
	// family. Without a primary comparison the reference is the lab's first provider.
	Exploratory []Family `json:"exploratory"`
	// SelfTest checks the whole chain: full_history without a limit must show all evidence.
	SelfTest SelfTest `json:"self_test"`
	// LeakControl tests the detector of Column.Isolation with planted leaks.
	LeakControl LeakControl `json:"leak_control"`
	// Audit is the result of a person's audit of the gold keys, with the figures before it; nil if there was no audit.
	Audit *Audited `json:"audit,omitempty"`
	// Notes say what a reader must know before looking at figures, for example that a stub gave the answers.
	Notes []string `json:"notes"`
}

// Audited is an audit of the pack that was applied to the figures.
type Audited struct {
	By      string `json:"by"`
	Checked int    `json:"checked"`
	// Excluded probes are not counted in any column or comparison.
	Excluded []pack.Excluded `json:"excluded"`
	// Before has the headline figures without the audit, Primary the sealed comparison without it.
	Before  []Unaudited `json:"before"`
	Primary *Family     `json:"primary,omitempty"`
}

// Unaudited has a column's headline figures at one budget, with all probes.
type Unaudited struct {
	Label   string            `json:"label"`
	Budget  int64             `json:"budget"`
	Figures map[string]Figure `json:"figures"`
}

// Run describes what was run.
type Run struct {
	Name string `json:"name"`
	// Program and Commit identify the memhost that started the run. Those of the scoring program are not included,
	// because they change no figure.
	Program   string `json:"program"`
	Commit    string `json:"commit,omitempty"`
	LabSHA256 string `json:"lab_sha256"`
	// Complete is false if a cell failed or has not run yet.
	Complete bool `json:"complete"`
	// Foreign is true for a submitted ranking: only its retrieval metrics exist, and nothing else was checked.
	Foreign bool `json:"foreign,omitempty"`
	// Pack describes the data, without its personas.
	Pack Pack `json:"pack"`
	// Labels counts the probes by label, sorted.
	Labels []Count `json:"labels"`
	// Probes counts all probes, Answerable those that can be answered.
	Probes     int `json:"probes"`
	Answerable int `json:"answerable"`
	// Sessions counts the conversations that the pack's preferences make possible; nil for a pack without preferences.
	Sessions *Sessions `json:"sessions,omitempty"`
}

// Pack is the part of a pack's manifest that is about all personas.
type Pack struct {
	Name       string        `json:"name"`
	Source     *pack.Source  `json:"source,omitempty"`
	Builder    pack.Builder  `json:"builder"`
	Timestamps string        `json:"timestamps"` // source or synthetic
	Counts     pack.Counts   `json:"counts"`
	Repairs    []pack.Repair `json:"repairs,omitempty"`
}

// Keys must be equal for two runs to be comparable. See Compare.
type Keys struct {
	PackSHA256 string  `json:"pack_sha256"`
	Budgets    []int64 `json:"budgets"` // ascending; 0 means no limit
	// MinTokens has the min_tokens of those budgets that have one, by their max_tokens.
	MinTokens map[int64]int64 `json:"min_tokens,omitempty"`
	Tokenizer string          `json:"tokenizer"`
	Frame     string          `json:"frame"`
	// Profile is memory.profile of the hosts: best or source-design, or both joined by ", " if columns differ. It is
	// empty if no manifest names one, which is the case in runs that predate profiles.
	Profile string `json:"profile"`
	// Contract is the binary interface of the modules, such as mh1.
	Contract string `json:"contract"`
	// Order is how a provider ordered its context, by label, if its configuration says so. Two runs are compared by the
	// labels that both have.
	Order    map[string]string `json:"order"`
	Policies Policies          `json:"policies"`
	// Audit is the hash of the audit that was applied; empty if there is none.
	Audit string `json:"audit,omitempty"`
}

// Policies are the lab's rules.
type Policies struct {
	// Insertion has the pack builder's options insert, group and perspective, if it has them.
	Insertion          map[string]string `json:"insertion"`
	ReadinessTimeoutMS int64             `json:"readiness_timeout_ms"`
	OnTimeout          string            `json:"on_timeout"`
	Replicates         int               `json:"replicates"`
	Seed               uint64            `json:"seed"`
	Stability          float64           `json:"stability"`
	Concurrency        int               `json:"concurrency"`
	// Cassettes means that each cell was recorded, one operation at a time.
	Cassettes bool `json:"cassettes"`
}

// Entry explains a metric.
type Entry struct {
	// Name is the key in Figures, such as recall@10.
	Name  string `json:"name"`
	Group string `json:"group"` // behaviour, retrieval, budgeted, answer, validity, context, abstention, stability, cost
	// What describes numerator and denominator in one sentence.
	What string `json:"what"`
	// Unit is share (0 to 1), count, days or tokens.
	Unit string `json:"unit"`
	// Better is more, less, or empty if neither is better.
	Better string `json:"better,omitempty"`
	// Headline metrics are those shown for slices and in exploratory comparisons.
	Headline bool `json:"headline,omitempty"`
	// Attribution means that the metric relies on the provider's own source_event_ids. Verdicts on it require that
	// content agrees.
	Attribution bool `json:"attribution,omitempty"`
}

// Column is one provider, over all its replicates, or a reference.
type Column struct {
	Label string `json:"label"`
	// Provider is the name of the memory; for a computed reference, its label.
	Provider string `json:"provider"`
	// Kind is architecture or control for a provider, reference for a computed column, submission for a foreign
	// ranking.
	Kind string `json:"kind"`
	// Module is what served, from the cells' sealed manifests; nil for a reference.
	Module *Module `json:"module,omitempty"`
	// Cells are the replicates.
	Cells []Cell `json:"cells"`
	// Partial means that a cell failed or has not ended. What it did not ask is missing, never zero.
	Partial bool `json:"partial,omitempty"`
	// ShownSpans says how items were located in the context: reported (by the provider), located (here, by their text),
	// or none (nothing was returned).
	ShownSpans string     `json:"shown_spans"`
	Wall       Wall       `json:"wall"`
	Readiness  Readiness  `json:"readiness"`
	Isolation  Isolation  `json:"isolation"`
	FilterMode []Count    `json:"filter_mode"` // retrievals with a context, by the reported filter mode
	Budgets    []Budgeted `json:"budgets"`     // ascending, 0 (no limit) last
	Ages       []AgeCurve `json:"ages"`        // by budget
	FanOut     FanOut     `json:"fan_out"`
	WriteErrs  []Count    `json:"write_errors"` // by class
	// EventsFailed counts events that were given up, over all replicates, so that memory lacks them.
	EventsFailed int `json:"events_failed,omitempty"`
	// EventsLost counts recorded events that the memory reported as failed or lost at the last wait, over all replicates.
	EventsLost int `json:"events_lost,omitempty"`
	// EventsEmpty counts recorded events of which the memory kept nothing (not_retained), over all replicates.
	EventsEmpty int `json:"events_empty,omitempty"`
	// EventsOutstanding counts recorded events that were pending or unknown after each person's last wait, over all
	// replicates.
	EventsOutstanding int     `json:"events_outstanding,omitempty"`
	Warnings          []Count `json:"warnings"` // of retrievals, by code
	// Feedback means that the simulator's corrections were passed to apply_feedback.
	Feedback bool `json:"feedback,omitempty"`
	// Behaviour counts the conversations of an agent with people; nil if there were none.
	Behaviour *Behaviour `json:"behaviour,omitempty"`
	// Agent counts an agent's answers; nil if there are none.
	Agent  *Answers    `json:"agent,omitempty"`
	Smokes []SmokeLine `json:"smokes"`
	// Notes say what is special about this column, such as "shown spans: located".
	Notes []string `json:"notes"`
}

// Answers counts an agent's answers, over all replicates.
type Answers struct {
	Given  int     `json:"given"`
	Stub   int     `json:"stub"`   // of these, by the project's stand-in for a model
	Errors []Count `json:"errors"` // turns without an answer, by class
	// FinishReasons counts why the model stopped, in the endpoint's terms, including answers without text.
	FinishReasons []Count `json:"finish_reasons"`
	// PromptTokens and CompletionTokens are the endpoint's counts, over the Counted turns for which it reported them.
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	Counted          int   `json:"counted"`
}

// Module identifies the module that served a column.
type Module struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	SHA256     string `json:"sha256"`
	ConfigHash string `json:"config_hash"`
	ABI        string `json:"abi"`
}

// SmokeLine is the verdict of a smoke test before the first event, of the column's worst replicate.
type SmokeLine struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
}

// Cell is one replicate.
type Cell struct {
	Replicate int    `json:"replicate"`
	State     string `json:"state"` // waiting, running, complete, failed
	// Error is the class of the error that ended it, if it failed.
	Error    string `json:"error,omitempty"`
	Events   int    `json:"events"`   // recorded
	Sessions int    `json:"sessions"` // finished test sessions
	// Asked counts retrievals, without repeated reads; Wanted is the number in a complete cell.
	Asked  int `json:"asked"`
	Wanted int `json:"wanted"`
}

// Wall counts test sessions by what they proved about the read-only wall, over all replicates.
type Wall struct {
	Clean        int `json:"clean"`
	Breached     int `json:"breached"`
	Inconclusive int `json:"inconclusive"`
	// CanariesTried counts writes that were tried while read-only, CanariesSkipped those that were answered correctly,
	// CanariesFound those that appeared later.
	CanariesTried   int `json:"canaries_tried"`
	CanariesSkipped int `json:"canaries_skipped"`
	CanariesChecked int `json:"canaries_checked"`
	CanariesFound   int `json:"canaries_found"`
	// Breaches has the first few, as "persona, session: detail".
	Breaches []string `json:"breaches"`
}

// Readiness counts the waits before test sessions.
type Readiness struct {
	Waits int `json:"waits"`
	// TimedOut counts waits that ended while events were still outstanding.
	TimedOut int `json:"timed_out"`
	Errors   int `json:"errors"`
	// PendingProbes counts probes in these sessions: they were asked anyway.
	PendingProbes int `json:"pending_probes"`
}

// Isolation is the result of searching for text that can only come from another cluster: canaries in every context and
// in items that were returned but not shown, and word sequences in every context.
type Isolation struct {
	// Measured is false if nothing could have been found: Reason says why.
	Measured bool   `json:"measured"`
	Reason   string `json:"reason,omitempty"`
	// Clusters is how many were searched, Leaking how many showed something foreign.
	Clusters int `json:"clusters"`
	Leaking  int `json:"leaking"`
	// Bound is the upper 95 % bound of the rate of leaking clusters, if none leaked: 1 - 0.05^(1/clusters).
	Bound *float64 `json:"bound,omitempty"`
	// Canaries and Sequences count finds: markers of other personas, and sequences of eight words in passages that only
	// occur in another cluster's events and cannot be a coincidence.
	Canaries  int `json:"canaries"`
	Sequences int `json:"sequences"`
	// Finds has the first few, sorted.
	Finds []Leak `json:"finds"`
}

// Leak is one find.
type Leak struct {
	ProbeID   string `json:"probe_id"`
	PersonaID string `json:"persona_id"`
	Owner     string `json:"owner"` // a persona that the text belongs to
	Kind      string `json:"kind"`  // canary or sequence
	Text      string `json:"text"`
}

// LeakControl is the positive control: texts from other clusters, given to the same detector.
type LeakControl struct {
	Planted int `json:"planted"`
	Found   int `json:"found"`
	// Detector is works, broken (a planted text was missed, so no isolation verdict is valid) or not tested.
	Detector string `json:"detector"`
}

// SelfTest is full_history's recall@tokens without a limit.
type SelfTest struct {
	// Verdict is pass, broken or not measured.
	Verdict string `json:"verdict"`
	Reason  string `json:"reason,omitempty"`
	Label   string `json:"label,omitempty"` // of the column
	// Recall is over the probes of personas whose context was not cut; Personas counts these, LeftOut the others.
	Recall   *float64 `json:"recall,omitempty"`
	Personas int      `json:"personas"`
	LeftOut  int      `json:"left_out"`
	// Missed lists the first few probes whose evidence was not shown.
	Missed []string `json:"missed"`
}

// Budgeted is a column at one budget.
type Budgeted struct {
	Budget int64 `json:"budget"` // max_tokens; 0: no limit
	// Answered counts retrievals with an answer, over all replicates; Missing those that were never made; Errors the
	// failed ones by class.
	Answered int     `json:"answered"`
	Missing  int     `json:"missing"`
	Errors   []Count `json:"errors"`
	Overall  Figures `json:"overall"`
	// WithoutPending is Overall without the probes in sessions that were not ready, if there are any. It only has
	// headline metrics.
	WithoutPending Figures `json:"without_pending,omitempty"`
	// ByLabel, BySession (after_session, as a number) and BySpeaker only have headline metrics. BySpeaker is empty if
	// the pack names no speakers.
	ByLabel   []Slice `json:"by_label"`
	BySession []Slice `json:"by_session"`
	BySpeaker []Slice `json:"by_speaker"`
}

// Figures are metrics by name; the Catalogue explains them.
type Figures map[string]Figure

// Figure is one metric. Exactly one of Value and Reason is set.
type Figure struct {
	Value *stats.Interval `json:"value"`
	// Reason says why there is no value, such as "the pack has no stale values".
	Reason string `json:"reason,omitempty"`
	// Missing counts probes in the denominator without a value: they were never asked.
	Missing int `json:"missing,omitempty"`
	// Failed counts probes whose retrieval failed, or whose event could not be recorded or was lost. They get the worst
	// value, so that failing is never an advantage.
	Failed int `json:"failed,omitempty"`
	// Bounds are the means with everything that is missing or failed at its worst and at its best; nil if nothing is.
	Bounds *Bounds `json:"bounds,omitempty"`
	// Chance is the expected value of a random order (session.* only).
	Chance *float64 `json:"chance,omitempty"`
}

// Bounds limit a figure, whatever the values of the missing and failed probes would have been.
type Bounds struct {
	Worst float64 `json:"worst"`
	Best  float64 `json:"best"`
}

// Slice is a subset of the probes.
type Slice struct {
	Name    string  `json:"name"`
	Probes  int     `json:"probes"`
	Figures Figures `json:"figures"`
}

// AgeCurve shows how current a memory is, by the time since the last change of what is asked.
type AgeCurve struct {
	Budget int64 `json:"budget"`
	Bins   []Age `json:"bins"`
}

// Age is one bin: From days (inclusive) to To days (exclusive; nil means no end) between the last change and the
// question.
type Age struct {
	From    float64  `json:"from_days"`
	To      *float64 `json:"to_days"`
	Current Figure   `json:"current_shown"`
	Stale   Figure   `json:"stale_shown"`
}

// FanOut counts how many source events the items of a column name.
type FanOut struct {
	Items int `json:"items"`
	// None, Few (1 to 3: attributed) and Many count items by their number of source events.
	None int     `json:"none"`
	Few  int     `json:"few"`
	Many int     `json:"many"`
	Mean float64 `json:"mean"` // over items that name any
	Max  int     `json:"max"`
}

// Count is a named number. Lists of them are sorted by name.
type Count struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Family compares every provider with one reference on one metric at one budget, adjusted together.
type Family struct {
	Metric    string `json:"metric"`
	Budget    int64  `json:"budget"`
	Reference string `json:"reference"`
	// Turned means that less is better, so values were replaced by 1 - value: a positive difference always favours the
	// provider.
	Turned      bool         `json:"turned,omitempty"`
	Comparisons []Comparison `json:"comparisons"`
	// Reason says why there are no comparisons.
	Reason string `json:"reason,omitempty"`
}

// DependsOnAttribution is the verdict if a metric that relies on the provider's own attribution disagrees with the
// content of what is shown.
const DependsOnAttribution stats.Verdict = "depends on attribution"

// DependsOnOrder is the verdict if words of the evidence are shown, but not in its order: for example as a list of
// words, or as facts that a backend has rephrased. Such kinds of memories can only be compared by judged behaviour.
const DependsOnOrder stats.Verdict = "depends on the order of words"

// DependsOnSilence is the verdict if less wrong content is shown, but also less right content: showing nothing at all
// would win in the same way.
const DependsOnSilence stats.Verdict = "depends on showing little"

// Withheld is the verdict on a provider, or against a reference, whose memory changed while read-only or that showed
// text of another cluster: its figures may not be about the memory that the pack describes.
const Withheld stats.Verdict = "withheld: the wall or the isolation was breached"

// Comparison compares one provider with the reference. Reports may only give its verdict.
type Comparison struct {
	Label string `json:"label"`
	stats.Comparison
	// Content is the verdict on content for the same probes, if the metric relies on attribution.
	Content stats.Verdict `json:"content_verdict,omitempty"`
}

// Timings is timings.json: everything that depends on time or may change with a retry.
type Timings struct {
	Timings int            `json:"timings"` // Version
	Columns []ColumnTiming `json:"columns"`
}

// ColumnTiming has the times and native calls of one column.
type ColumnTiming struct {
	Label string `json:"label"`
	// Latency is nil if a cell did not run alone, with one persona at a time: Reason says so.
	Latency *Latency `json:"latency"`
	Reason  string   `json:"reason,omitempty"`
	// ReadinessMS are the waits before test sessions.
	ReadinessMS *Quantiles `json:"readiness_ms,omitempty"`
	// Freshness is how soon acknowledged content was shown; nil if it was not measured.
	Freshness *Freshness `json:"freshness,omitempty"`
	Retrieve  Native     `json:"retrieve"`
	Record    Native     `json:"record"`
	// Ready has the calls with which the memory became ready: readiness checks, and its work in the background, in which
	// some memories call a model. Its operations are the waits for readiness.
	Ready Native `json:"ready"`
}

// Freshness counts events that were recorded in a separate scope and retrieved repeatedly until they were shown.
type Freshness struct {
	Tried int `json:"tried"`
	// Found were shown; Failed ended with an error. The others were not shown although memory was ready, or not in
	// time.
	Found  int `json:"found"`
	Failed int `json:"failed"`
	// AfterMS is the time from the receipt to the end of the retrieval that showed the event, for those found.
	AfterMS Quantiles `json:"after_ms"`
}

// Latency has the latencies of operations, in milliseconds, split into backend, module (plugin) and host.
type Latency struct {
	Retrieve Split     `json:"retrieve"`
	Budgets  []Split   `json:"by_budget"`
	Record   Quantiles `json:"record"`
}

// Split is a latency split into its parts.
type Split struct {
	Budget  int64     `json:"budget,omitempty"`
	Total   Quantiles `json:"total"`
	Backend Quantiles `json:"backend"`
	Module  Quantiles `json:"module"`
	Host    Quantiles `json:"host"`
}

// Quantiles are of the lower kind (inverted empirical distribution), in milliseconds.
type Quantiles struct {
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Native counts the calls of the backend in one kind of operation, over all replicates.
type Native struct {
	Operations int   `json:"operations"`
	Calls      int64 `json:"calls"`
	Retries    int64 `json:"retries"`
	BytesOut   int64 `json:"bytes_out"`
	BytesIn    int64 `json:"bytes_in"`
	// Routes counts the calls by route.
	Routes []Count `json:"routes"`
}
