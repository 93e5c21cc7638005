// Package score computes the metrics of an evaluation from its pack and the journals of its cells. It calls no model
// and no provider and reads no clock: the same run always produces the same bytes of metrics.json, on every machine.
//
// Score processes a run in four passes, so that it only keeps figures and hashes in memory, not texts: the pack's
// probes and the positions of its events; every journal with its contexts, which turns each retrieval into a reading (a
// value for each metric); the pack's events, cluster by cluster, for the references and for what contexts may contain;
// and the events once more, for what contexts must not contain. Then it averages readings over replicates within a
// probe, and computes intervals over clusters.
//
//	metrics.go     the form of metrics.json and timings.json
//	metric.go      what a metric is; metric_*.go: one file for each, with its rule, denominator and examples
//	score.go       Score: a run's columns, keys and self-test
//	timeline.go    what is kept of a pack
//	cells.go       journals become readings; measure.go: what metrics share of one retrieval; support.go: what an item shows
//	rank.go        ranking metrics; words.go: words, folded texts, word sequences; locate.go: items in a context
//	references.go  what needs no provider: random messages, the evidence itself
//	isolation.go   the leak detector and its positive control
//	figures.go     readings become figures; families.go: figures become verdicts; timing.go: what the clock decides
package score
