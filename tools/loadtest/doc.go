// Package loadtest tests hosts under load, running as programs: one on a file, and one and three on PostgreSQL. It
// measures latencies, errors and sizes, relative to those with a file in the same run. A soak test looks for what grows
// over an hour, and a fill measures the cost of a million events.
//
//	tools/stress load
//	tools/stress many
//	tools/stress soak
package loadtest
