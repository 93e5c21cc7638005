// Package loadtest puts load on hosts that serve as programs: one on a file, one and three over PostgreSQL. It measures
// latencies, errors and sizes, as ratios to the file's in the same run. A soak looks for what
// grows over an hour, and a fill at what a million events cost.
//
//	tools/stress load
//	tools/stress many
//	tools/stress soak
package loadtest
