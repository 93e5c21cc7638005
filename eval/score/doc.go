// Package score computes the metrics of an evaluation from its pack and the journals of its cells. It calls no model and no
// provider and reads no clock: the same run gives the same bytes of metrics.json, on every machine.
//
//	metrics.go  the form of metrics.json and timings.json
package score
