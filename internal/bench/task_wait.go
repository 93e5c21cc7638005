package bench

import (
	"context"
	"math/rand/v2"
	"time"
)

// cacheLine is what a processor fetches at once; each leads to the next one to look at.
type cacheLine struct {
	next *cacheLine
	_    [56]byte
}

// waitTask measures what the machine itself charges for waiting as long as the backends of the rows before: what a program uses again after a pause comes from its
// caches, or from memory where others have used them meanwhile, as in a virtual machine that shares its processor. Everything that runs after the backend's answer, on either
// side of those rows, pays that for each line of code and data that it touches.
func waitTask() task {
	const id, pause, lines = "wait", 5 * time.Millisecond, 4096
	const waited, computed, atOnce = "after waiting 5ms", "after computing for 5ms", "at once"
	rows := []Row{{ID: id, What: "this machine: a line of 64 bytes that was used before, one of 256 KB in random order", Unit: Nanoseconds, By: []string{waited, computed, atOnce}}}
	return task{name: id, rows: rows, round: func(ctx context.Context, e *env) (figures, error) {
		all := make([]cacheLine, lines)
		order := rand.New(rand.NewPCG(1, 2)).Perm(lines)
		for i, at := range order {
			all[at].next = &all[order[(i+1)%lines]]
		}
		at := &all[0]
		look := func() float64 {
			began := time.Now()
			for range lines {
				at = at.next
			}
			return float64(time.Since(began)) / lines
		}
		f := figures{samples: map[cell]sample{}}
		for who, rest := range map[string]func(){
			waited: func() { time.Sleep(pause) },
			computed: func() {
				for began := time.Now(); time.Since(began) < pause; {
					_ = referenceLoop(1)
				}
			},
			atOnce: func() {},
		} {
			var took []float64
			for range e.times(20) {
				look()
				look()
				rest()
				took = append(took, look())
			}
			f.samples[cell{id, who}] = sample{value: median(took)}
		}
		return f, ctx.Err()
	}}
}
