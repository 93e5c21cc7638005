package score

import (
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/stats"
)

// Version is the form of metrics.json and timings.json.
const Version = 1

// Metrics is metrics.json: everything that the clock cannot change. The same run gives the same bytes.
type Metrics struct {
	Metrics int  `json:"metrics"` // Version
	Run     Run  `json:"run"`
	Keys    Keys `json:"keys"`
	// Catalogue explains every metric that occurs, in the order in which a table shows them.
	Catalogue []Entry `json:"catalogue"`
	// Columns are the lab's providers in its order, then the references that are computed here: random, evidence.
	Columns []Column `json:"columns"`
	// Primary is the comparison that the lab sealed before the run. Nil: the lab named none.
	Primary *Family `json:"primary,omitempty"`
	// Exploratory are the same providers against the same reference on other metrics and budgets, each a family of its
	// own. Without a primary comparison the reference is the lab's first provider.
	Exploratory []Family `json:"exploratory"`
	// SelfTest is the check of the whole chain: full_history without a limit must show all evidence.
	SelfTest SelfTest `json:"self_test"`
	// LeakControl is a leak that was planted in front of the detector of Column.Isolation.
	LeakControl LeakControl `json:"leak_control"`
	// Audit is what a person found about the gold keys, with the figures without it. Nil: there was no audit.
	Audit *Audited `json:"audit,omitempty"`
	// Notes say what a reader must know before any figure, such as that text was answered by a stub.
	Notes []string `json:"notes"`
}

// Audited is an audit of the pack that the figures follow.
type Audited struct {
	By      string `json:"by"`
	Checked int    `json:"checked"`
	// Excluded probes count for no column, and in no comparison.
	Excluded []pack.Excluded `json:"excluded"`
	// Before are the headline figures without the audit, Primary the sealed comparison without it.
	Before  []Unaudited `json:"before"`
	Primary *Family     `json:"primary,omitempty"`
}

// Unaudited are a column's headline figures at one budget, with every probe.
type Unaudited struct {
	Label   string            `json:"label"`
	Budget  int64             `json:"budget"`
	Figures map[string]Figure `json:"figures"`
}

// Run is what was run.
type Run struct {
	Name string `json:"name"`
	// Program and Commit are of the memhost that began the run. Scoring's own are not here: they change no figure.
	Program   string `json:"program"`
	Commit    string `json:"commit,omitempty"`
	LabSHA256 string `json:"lab_sha256"`
	// Complete is false where a cell failed or is still to run.
	Complete bool `json:"complete"`
	// Foreign is true for a submitted ranking: only its retrieval metrics exist, and nothing else was checked.
	Foreign bool `json:"foreign,omitempty"`
	// Pack describes the data; its personas are left out.
	Pack Pack `json:"pack"`
	// Labels count the probes by label, sorted.
	Labels []Count `json:"labels"`
	// Probes counts all probes, Answerable those that can be answered.
	Probes     int `json:"probes"`
	Answerable int `json:"answerable"`
	// Sessions are the conversations that the pack's preferences make possible; nil for a pack without preferences.
	Sessions *Sessions `json:"sessions,omitempty"`
}

// Pack is the manifest of the pack, as far as it holds for all personas.
type Pack struct {
	Name       string        `json:"name"`
	Source     *pack.Source  `json:"source,omitempty"`
	Builder    pack.Builder  `json:"builder"`
	Timestamps string        `json:"timestamps"` // source or synthetic
	Counts     pack.Counts   `json:"counts"`
	Repairs    []pack.Repair `json:"repairs,omitempty"`
}

// Keys are what two runs must have in common to be compared. See Compare.
type Keys struct {
	PackSHA256 string  `json:"pack_sha256"`
	Budgets    []int64 `json:"budgets"` // ascending; 0 is no limit
	Tokenizer  string  `json:"tokenizer"`
	Frame      string  `json:"frame"`
	// Profile is memory.profile of the hosts: best or source-design; both, joined by ", ", where columns differ. Empty
	// where no manifest names one, which is so in runs from before there were profiles.
	Profile string `json:"profile"`
	// Contract is the binary interface of the modules, such as mh1.
	Contract string `json:"contract"`
	// Order is how a provider arranged its context, by label, where its configuration says so. Two runs are compared by
	// the labels that both have.
	Order    map[string]string `json:"order"`
	Policies Policies          `json:"policies"`
	// Audit is the hash of the audit that leaves out probes; empty where there is none.
	Audit string `json:"audit,omitempty"`
}

// Policies are the lab's rules.
type Policies struct {
	// Insertion is the pack builder's option insert, group and perspective, where it has them.
	Insertion          map[string]string `json:"insertion"`
	ReadinessTimeoutMS int64             `json:"readiness_timeout_ms"`
	OnTimeout          string            `json:"on_timeout"`
	Replicates         int               `json:"replicates"`
	Seed               uint64            `json:"seed"`
	Stability          float64           `json:"stability"`
	Concurrency        int               `json:"concurrency"`
	// Cassettes: each cell was recorded, one operation at a time.
	Cassettes bool `json:"cassettes"`
}

// Entry explains a metric.
type Entry struct {
	// Name is the key in Figures, such as recall@10.
	Name  string `json:"name"`
	Group string `json:"group"` // behaviour, retrieval, budgeted, answer, validity, context, abstention, stability, cost
	// What is one sentence: numerator and denominator.
	What string `json:"what"`
	// Unit is share (0 to 1), count, days or tokens.
	Unit string `json:"unit"`
	// Better is more, less or empty where neither is better.
	Better string `json:"better,omitempty"`
	// Headline metrics are those of slices and of exploratory comparisons.
	Headline bool `json:"headline,omitempty"`
	// Attribution: the metric rests on the provider's own source_event_ids. A verdict on it needs content to agree.
	Attribution bool `json:"attribution,omitempty"`
}

// Column is one provider, over all its replicates, or a reference.
type Column struct {
	Label string `json:"label"`
	// Provider is the name of the memory; of a computed reference, its label.
	Provider string `json:"provider"`
	// Kind is architecture or control for a provider, reference for what was computed here, submission for a foreign
	// ranking.
	Kind string `json:"kind"`
	// Module is what served, from the cells' sealed manifests; nil for a reference.
	Module *Module `json:"module,omitempty"`
	// Cells are the replicates.
	Cells []Cell `json:"cells"`
	// Partial: a cell failed or has not ended. What it did not ask is missing, never zero.
	Partial bool `json:"partial,omitempty"`
	// ShownSpans says how items were found in the context: reported (by the provider), located (here, by their text),
	// or none (nothing was returned).
	ShownSpans string     `json:"shown_spans"`
	Wall       Wall       `json:"wall"`
	Readiness  Readiness  `json:"readiness"`
	Isolation  Isolation  `json:"isolation"`
	FilterMode []Count    `json:"filter_mode"` // retrievals that asked for a context, by the provider's own word
	Budgets    []Budgeted `json:"budgets"`     // ascending, 0 (no limit) last
	Ages       []AgeCurve `json:"ages"`        // by budget
	FanOut     FanOut     `json:"fan_out"`
	WriteErrs  []Count    `json:"write_errors"` // by class
	// EventsFailed counts events that were given up, over all replicates: memory lacks them.
	EventsFailed int     `json:"events_failed,omitempty"`
	Warnings     []Count `json:"warnings"` // of retrievals, by code
	// Behaviour counts the conversations of an agent with its people; nil where there were none.
	Behaviour *Behaviour `json:"behaviour,omitempty"`
	// Agent counts what an agent answered; nil where none did.
	Agent  *Answers    `json:"agent,omitempty"`
	Smokes []SmokeLine `json:"smokes"`
	// Notes say what is special here, such as "shown spans: located".
	Notes []string `json:"notes"`
}

// Answers counts an agent's turns, over all replicates.
type Answers struct {
	Given  int     `json:"given"`
	Stub   int     `json:"stub"`   // of these, by the project's stand-in for a model
	Errors []Count `json:"errors"` // turns without an answer, by class
	// FinishReasons are why the model stopped, in the endpoint's words, also for answers without a text.
	FinishReasons []Count `json:"finish_reasons"`
	// PromptTokens and CompletionTokens are what the endpoint counted, for the Counted turns whose answer reported it.
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	Counted          int   `json:"counted"`
}

// Module is what served a column.
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
	// Error is the class of what ended it, where it failed.
	Error    string `json:"error,omitempty"`
	Events   int    `json:"events"`   // recorded
	Sessions int    `json:"sessions"` // test sessions that were closed
	// Asked counts retrievals, without repeated reads; Wanted is what a complete cell asks.
	Asked  int `json:"asked"`
	Wanted int `json:"wanted"`
}

// Wall counts test sessions by what they proved of the read-only wall, over all replicates.
type Wall struct {
	Clean        int `json:"clean"`
	Breached     int `json:"breached"`
	Inconclusive int `json:"inconclusive"`
	// CanariesTried were written while the slot was read-only; CanariesSkipped were answered as they must be;
	// CanariesFound came up later.
	CanariesTried   int `json:"canaries_tried"`
	CanariesSkipped int `json:"canaries_skipped"`
	CanariesChecked int `json:"canaries_checked"`
	CanariesFound   int `json:"canaries_found"`
	// Breaches are the first few, as "persona, session: detail".
	Breaches []string `json:"breaches"`
}

// Readiness counts the waits before test sessions.
type Readiness struct {
	Waits    int `json:"waits"`
	TimedOut int `json:"timed_out"`
	Errors   int `json:"errors"`
	// PendingProbes are those of sessions whose wait timed out: they were asked nevertheless.
	PendingProbes int `json:"pending_probes"`
}

// Isolation is the search for text that only another cluster can have given: canaries in every context and in items
// that were returned and not shown, word sequences in every context.
type Isolation struct {
	// Measured is false where there is nothing that could be found: Reason says why.
	Measured bool   `json:"measured"`
	Reason   string `json:"reason,omitempty"`
	// Clusters were searched; Leaking showed something foreign.
	Clusters int `json:"clusters"`
	Leaking  int `json:"leaking"`
	// Bound is the upper 95 % bound of the rate of leaking clusters, where none leaked: 1 - 0.05^(1/clusters).
	Bound *float64 `json:"bound,omitempty"`
	// Canaries and Sequences count finds: markers of other personas, and sequences of eight words in passages that only
	// another cluster's events hold, and that chance cannot give.
	Canaries  int `json:"canaries"`
	Sequences int `json:"sequences"`
	// Finds are the first few, sorted.
	Finds []Leak `json:"finds"`
}

// Leak is one find.
type Leak struct {
	ProbeID   string `json:"probe_id"`
	PersonaID string `json:"persona_id"`
	Owner     string `json:"owner"` // a persona that it belongs to
	Kind      string `json:"kind"`  // canary or sequence
	Text      string `json:"text"`
}

// LeakControl is the positive control: texts of other clusters, put through the same detector.
type LeakControl struct {
	Planted int `json:"planted"`
	Found   int `json:"found"`
	// Detector is works, broken (a planted text was missed: no isolation verdict holds) or not tested.
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
	// Missed are probes whose evidence was not shown, the first few.
	Missed []string `json:"missed"`
}

// Budgeted is a column under one budget.
type Budgeted struct {
	Budget int64 `json:"budget"` // max_tokens; 0: no limit
	// Answered counts retrievals with an answer, over all replicates; Missing those never asked; Errors by class.
	Answered int     `json:"answered"`
	Missing  int     `json:"missing"`
	Errors   []Count `json:"errors"`
	Overall  Figures `json:"overall"`
	// WithoutPending is Overall without the probes of sessions that were not ready, where there are any: headline
	// metrics.
	WithoutPending Figures `json:"without_pending,omitempty"`
	// ByLabel, BySession (after_session, as a number) and BySpeaker hold headline metrics. BySpeaker is empty where the
	// pack names no speakers.
	ByLabel   []Slice `json:"by_label"`
	BySession []Slice `json:"by_session"`
	BySpeaker []Slice `json:"by_speaker"`
}

// Figures are metrics by name; Catalogue explains them.
type Figures map[string]Figure

// Figure is one metric. Exactly one of Value and Reason is set.
type Figure struct {
	Value *stats.Interval `json:"value"`
	// Reason says why there is no value, such as "the pack has no stale values".
	Reason string `json:"reason,omitempty"`
	// Missing counts probes that belong in the denominator and have no value: they were never asked.
	Missing int `json:"missing,omitempty"`
	// Failed counts probes whose retrieval failed, or whose event could not be recorded: they count as the worst value, so
	// that failing never pays.
	Failed int `json:"failed,omitempty"`
	// Bounds are the means with everything that is missing or failed at its worst and at its best; nil where nothing is.
	Bounds *Bounds `json:"bounds,omitempty"`
	// Chance is what drawing at random would give (session.* only).
	Chance *float64 `json:"chance,omitempty"`
}

// Bounds are the two means that a figure lies between, whatever the missing and failed probes would have been.
type Bounds struct {
	Worst float64 `json:"worst"`
	Best  float64 `json:"best"`
}

// Slice is a part of the probes.
type Slice struct {
	Name    string  `json:"name"`
	Probes  int     `json:"probes"`
	Figures Figures `json:"figures"`
}

// AgeCurve is how current a memory is, by the time since the last change of what is asked for.
type AgeCurve struct {
	Budget int64 `json:"budget"`
	Bins   []Age `json:"bins"`
}

// Age is one bin: From days (inclusive) to To days (exclusive; nil: no end) between the last change and the question.
type Age struct {
	From    float64  `json:"from_days"`
	To      *float64 `json:"to_days"`
	Current Figure   `json:"current_shown"`
	Stale   Figure   `json:"stale_shown"`
}

// FanOut is how many source events the items of a column name.
type FanOut struct {
	Items int `json:"items"`
	// None, Few (1 to 3: attributed) and Many are items by their source events.
	None int     `json:"none"`
	Few  int     `json:"few"`
	Many int     `json:"many"`
	Mean float64 `json:"mean"` // of items that name any
	Max  int     `json:"max"`
}

// Count is a number of something, by name. Lists of them are sorted by name.
type Count struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Family is every provider against one reference on one metric at one budget, adjusted together.
type Family struct {
	Metric    string `json:"metric"`
	Budget    int64  `json:"budget"`
	Reference string `json:"reference"`
	// Turned: less is better here, so values were turned to 1 - value: a positive difference always favours the
	// provider.
	Turned      bool         `json:"turned,omitempty"`
	Comparisons []Comparison `json:"comparisons"`
	// Reason says why there are none.
	Reason string `json:"reason,omitempty"`
}

// DependsOnAttribution is the verdict where a metric that rests on the provider's own attribution and the content of
// what is shown do not say the same.
const DependsOnAttribution stats.Verdict = "depends on attribution"

// DependsOnOrder is the verdict where words of the evidence are shown, and not in its order: by a list of words, or by
// facts that a backend put in other words. Across such kinds only judged behaviour is compared.
const DependsOnOrder stats.Verdict = "depends on the order of words"

// DependsOnSilence is the verdict where less that is wrong is shown, and less that is right, too: showing nothing at all
// would win the same.
const DependsOnSilence stats.Verdict = "depends on showing little"

// Withheld is the verdict on a provider, or against a reference, that changed behind the read-only wall or showed text of
// another cluster: its figures are not of the memory that the pack describes.
const Withheld stats.Verdict = "withheld: the wall or the isolation was breached"

// Comparison is one provider against the reference. Its verdict is the only one that a report may give.
type Comparison struct {
	Label string `json:"label"`
	stats.Comparison
	// Content is the verdict on content for the same probes, where the metric rests on attribution.
	Content stats.Verdict `json:"content_verdict,omitempty"`
}

// Timings is timings.json: what the clock decides, and what a retry may change.
type Timings struct {
	Timings int            `json:"timings"` // Version
	Columns []ColumnTiming `json:"columns"`
}

// ColumnTiming are the times and native calls of one column.
type ColumnTiming struct {
	Label string `json:"label"`
	// Latency is nil where a cell did not run alone, with one persona at a time: Reason says so.
	Latency *Latency `json:"latency"`
	Reason  string   `json:"reason,omitempty"`
	// ReadinessMS are the waits before test sessions.
	ReadinessMS *Quantiles `json:"readiness_ms,omitempty"`
	// Freshness is how soon what was acknowledged was shown; nil where it was not measured.
	Freshness *Freshness `json:"freshness,omitempty"`
	Retrieve  Native     `json:"retrieve"`
	Record    Native     `json:"record"`
}

// Freshness counts events that were recorded in a scope for this alone and asked for until they were shown.
type Freshness struct {
	Tried int `json:"tried"`
	// Found were shown; Failed ended with an error. The others were not shown although memory was ready, or in time.
	Found  int `json:"found"`
	Failed int `json:"failed"`
	// AfterMS is from the receipt to the end of the retrieval that showed the event, of those found.
	AfterMS Quantiles `json:"after_ms"`
}

// Latency of operations, in milliseconds, by who spent it: the backend, its module (plugin), the host.
type Latency struct {
	Retrieve Split     `json:"retrieve"`
	Budgets  []Split   `json:"by_budget"`
	Record   Quantiles `json:"record"`
}

// Split is a latency and its parts.
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

// Native are the calls to the backend of one operation, over all replicates.
type Native struct {
	Operations int   `json:"operations"`
	Calls      int64 `json:"calls"`
	Retries    int64 `json:"retries"`
	BytesOut   int64 `json:"bytes_out"`
	BytesIn    int64 `json:"bytes_in"`
	// Routes are the calls by route.
	Routes []Count `json:"routes"`
}
