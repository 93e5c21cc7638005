// Package loadtest puts load on hosts that serve as programs: one on a file, one and three over PostgreSQL. It measures
// latencies, errors and sizes, as ratios to the file's in the same run.
//
//	make load
package loadtest
