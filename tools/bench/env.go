package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/extism"
)

// env opens hosts for tasks, and closes them at the end of the round.
type env struct {
	dir   string
	short bool
	made  int
	open  []func() error
	// kept is shared by the rounds of a task.
	kept map[string]any
}

func newEnv(short bool) (*env, error) {
	dir, err := os.MkdirTemp("", "memhost-bench-")
	if err != nil {
		return nil, err
	}
	e := &env{dir: dir, short: short, kept: map[string]any{}}
	return e, nil
}

// pace returns a shorter pace if it only matters that everything runs.
func (e *env) pace(p pace) pace {
	if e.short {
		return pace{stretch: min(p.stretch, 20*time.Microsecond), round: time.Millisecond, stretches: 2}
	}
	return p
}

// later registers a function to call at the end of the round, in reverse order.
func (e *env) later(f func() error) { e.open = append(e.open, f) }

// endRound closes everything that the round has opened.
func (e *env) endRound() (err error) {
	for i := len(e.open) - 1; i >= 0; i-- {
		err = errors.Join(err, e.open[i]())
	}
	e.open = nil
	return err
}

func (e *env) end() error { return errors.Join(e.endRound(), os.RemoveAll(e.dir)) }

// keep returns what the first round has built. What build opens is closed again first.
func keep[T any](e *env, key string, build func() (T, error)) (T, error) {
	if v, ok := e.kept[key].(T); ok {
		return v, nil
	}
	v, err := build()
	if err = errors.Join(err, e.endRound()); err != nil {
		return v, err
	}
	e.kept[key] = v
	return v, nil
}

// folder returns a new folder for data.
func (e *env) folder() string {
	e.made++
	return filepath.Join(e.dir, "data", strconv.Itoa(e.made))
}

// host opens a host on its own folder, unless o names one to keep. All hosts share a compilation cache.
func (e *env) host(ctx context.Context, o host.Options) (*host.Host, error) {
	passing := o.DataDir == ""
	if passing {
		o.DataDir = e.folder()
	}
	if o.CacheDir == "" {
		o.CacheDir = filepath.Join(e.dir, "compiled")
	}
	o.Engines = []host.Engine{extism.Engine()}
	h, err := host.New(ctx, o)
	if err != nil {
		return nil, err
	}
	e.later(func() error {
		err := h.Close(context.WithoutCancel(ctx))
		if passing {
			err = errors.Join(err, os.RemoveAll(o.DataDir))
		}
		return err
	})
	return h, nil
}

// slot opens a slot on its own host.
func (e *env) slot(ctx context.Context, o host.Options, c host.ProviderConfig) (*host.Slot, error) {
	h, err := e.host(ctx, o)
	if err != nil {
		return nil, err
	}
	s, err := h.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	e.later(func() error { return s.Close(context.WithoutCancel(ctx)) })
	return s, nil
}
