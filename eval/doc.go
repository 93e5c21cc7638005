// Package eval compares memory providers in such a way that every figure can be recomputed.
//
// An evaluation goes through these packages, each of which only reads what the previous ones wrote to disk:
//
//	pack     a timeline of events and probes, neutral to data sets; builders make one from a data set's own files
//	lab      what to run: pack, providers, budgets, insertion points, replicates, the sealed primary comparison
//	run      one cell for each provider and replicate: a host, a data folder and a slot of its own, and a hash-chained journal
//	rundir   the folder that a run writes and the others read; no host is needed for it
//	score    metrics from journal and pack alone; statistics over clusters
//	report   one HTML file, Markdown, CSV and JSON from the metrics
//
// The runner uses the slot only through package host, never the HTTP door: every cell owns its host, so that exactly
// one provider is active in it, a run needs no free port, killing the process ends everything, and a cassette can
// record it. Package host uses nothing from this folder.
package eval
