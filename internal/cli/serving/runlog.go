package serving

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/base/wholefile"
	"github.com/memhost/memhost/internal/cli"
)

// manifestFile keeps the run manifest file up to date: it is written after each load, and at most once a second when
// scopes are added.
type manifestFile struct {
	path    string
	log     hclog.Logger
	changed chan struct{}
	stop    chan struct{}
	done    chan struct{}
}

const manifestPause = time.Second

func newManifestFile(path string, log hclog.Logger) *manifestFile {
	return &manifestFile{path: path, log: log, changed: make(chan struct{}, 1), stop: make(chan struct{}),
		done: make(chan struct{})}
}

// onManifest is for host.Options.OnManifest.
func (f *manifestFile) onManifest() {
	select {
	case f.changed <- struct{}{}:
	default: // a write is already pending
	}
}

// start writes the manifest for the first time, and keeps it up to date until close.
//
// Errors: invalid_argument if the file cannot be written. Later failures, and a full disk, are only logged.
func (f *manifestFile) start(slot host.Contract, noRoom bool) error {
	err := f.write(slot)
	if err != nil && noRoom {
		f.log.Warn("the run manifest cannot be written", "file", f.path, "error", err)
	} else if err != nil {
		close(f.done)
		return abi.WrapError(abi.CodeInvalidArgument, "run.manifest: "+err.Error(),
			err).WithHint("make room there, or name another file: --manifest FILE")
	}
	go func() {
		defer close(f.done)
		for ended := false; !ended; {
			select {
			case <-f.changed:
			case <-f.stop:
				ended = true
			}
			began := time.Now()
			if err := f.write(slot); err != nil {
				f.log.Warn("the run manifest cannot be written", "file", f.path, "error", err)
			}
			// Counting very many scopes takes long: spend at most a fiftieth of the time on it.
			pause := max(manifestPause, 50*time.Since(began))
			select {
			case <-f.stop:
			case <-time.After(pause):
			}
		}
	}()
	return nil
}

// close writes the manifest for the last time. The slot must still serve.
func (f *manifestFile) close() {
	close(f.stop)
	<-f.done
}

// write writes the manifest, readable by its owner only.
func (f *manifestFile) write(slot host.Contract) error {
	m, err := slot.Manifest(context.Background())
	if err != nil {
		return err
	}
	text, err := cli.Indented(abi.Marshal(m))
	if err != nil {
		return err
	}
	return wholefile.Write(f.path, text, 0o600)
}
