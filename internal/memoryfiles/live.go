package memoryfiles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/wholefile"
)

// LiveFolder is the folder of the copies in a data folder: files/RUN/PERSON/...
const LiveFolder = "files"

// statusName is the file in LiveFolder that says how the last process left the copies.
const statusName = ".memhost.json"

// status is how the last process left the copies.
type status struct {
	// Provider is the provider whose memory the copies are.
	Provider string `json:"provider"`
	// Clean is true if every copy was up to date.
	Clean bool `json:"clean"`
}

// Slot is the part of a slot that Live needs.
type Slot interface {
	Querier
	Capabilities(ctx context.Context) (*report.Capabilities, error)
	ListScopes(ctx context.Context, q report.ScopeQuery) (*report.ScopePage, error)
}

// LiveOptions configure a Live. DataDir is required.
type LiveOptions struct {
	DataDir string
	// On keeps copies. Without it, copies of an earlier time are still removed when a scope is erased.
	On     bool
	Logger hclog.Logger
	Now    func() time.Time
}

// Live keeps a copy of each scope's files in the data folder, with a git repository, and updates it after every commit.
// The memory itself is the slot's state; a copy is made anew from it at any time. A scope of which something is erased
// loses its copy before, and gets a new one, without the old history, afterwards.
//
// Live is a host.FileCopies. It starts copying with Start.
type Live struct {
	options LiveOptions
	dir     string
	slot    Slot
	wake    chan struct{}
	stop    context.CancelFunc
	done    chan struct{}

	// hurry is closed when the copies are to be finished without pauses.
	hurry chan struct{}

	mu sync.Mutex
	// dirty has the scopes whose copies are due, by their folders, as all maps here.
	dirty map[string]abi.MemoryScope
	// all counts the requests for every scope of the serving provider since the last list of them.
	all int
	// erasing counts the running erasures of a scope. No copy of it is made until they end.
	erasing map[string]int
	// now is the folder whose copy is being made, "" if there is none. idle is closed when that ends, cancel ends it early.
	now    string
	idle   chan struct{}
	cancel context.CancelFunc
	// edited lists where edits of a person are kept. failed says why a copy could not be made, and under "" why the scopes
	// could not be listed.
	edited []string
	failed map[string]string
	closed bool
}

var _ host.FileCopies = (*Live)(nil)

// IsLive reports whether a folder is the copy of a scope.
func IsLive(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, gitFolderName, recordName))
	return err == nil
}

// NewLive returns the copies of a data folder; nil if there is nothing to keep and nothing to remove.
func NewLive(o LiveOptions) *Live {
	dir := filepath.Join(o.DataDir, LiveFolder)
	if _, err := os.Lstat(dir); err != nil && !o.On {
		return nil
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Live{options: o, dir: dir, wake: make(chan struct{}, 1), hurry: make(chan struct{}),
		dirty: map[string]abi.MemoryScope{}, erasing: map[string]int{}, failed: map[string]string{}}
}

// Start copies from now on what a slot holds. every makes all copies anew; without it that is only done if the last
// process did not finish its copies or another provider served.
//
// Errors: those of the data folder.
func (l *Live) Start(ctx context.Context, slot Slot, every bool) error {
	if l == nil {
		return nil
	}
	l.slot = slot
	if !l.options.On {
		return l.writeStatus(status{}) // what is recorded from now on is in no copy
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return abi.WrapError(abi.CodeUnavailable, l.dir+" cannot be made: "+err.Error(), err)
	}
	left := l.readStatus()
	provider, _ := l.serving(ctx)
	l.mu.Lock()
	l.all = 0
	if every || !left.Clean || left.Provider != provider {
		l.all = 1
	}
	l.mu.Unlock()
	if err := l.writeStatus(status{Provider: provider}); err != nil {
		return err
	}
	work, stop := context.WithCancel(host.WithOrigin(context.WithoutCancel(ctx), host.OriginFiles))
	l.stop, l.done = stop, make(chan struct{})
	go l.run(work)
	l.wakeUp()
	return nil
}

// Close finishes the copies, until ctx ends.
func (l *Live) Close(ctx context.Context) {
	if l == nil || l.stop == nil {
		return
	}
	close(l.hurry)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for l.behind() && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	l.stop()
	<-l.done
	l.mu.Lock()
	clean := l.all == 0 && len(l.dirty) == 0
	l.closed = true
	l.mu.Unlock()
	if err := l.writeStatus(status{Provider: l.readStatus().Provider, Clean: clean}); err != nil {
		l.options.Logger.Warn("copies of files: "+err.Error(), "folder", l.dir)
	}
}

// behind reports whether a copy is missing that can be made now.
func (l *Live) behind() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all > 0 && l.failed[""] == "" || l.now != "" {
		return true
	}
	for dir := range l.dirty {
		if l.failed[dir] == "" && l.erasing[dir] == 0 {
			return true
		}
	}
	return false
}

// Changed implements host.FileCopies.
func (l *Live) Changed(scope abi.MemoryScope) {
	if !l.options.On {
		return
	}
	l.mu.Lock()
	l.dirty[folderOf(scope)] = scope
	closed := l.closed
	l.mu.Unlock()
	if closed { // after the last copy
		_ = l.writeStatus(status{})
	}
	l.wakeUp()
}

// Served implements host.FileCopies.
func (l *Live) Served() {
	l.mu.Lock()
	if l.options.On {
		l.all++
	}
	l.mu.Unlock()
	l.wakeUp()
}

func (l *Live) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Erasing implements host.FileCopies.
func (l *Live) Erasing(_ context.Context, scope abi.MemoryScope) (func(), error) {
	name := folderOf(scope)
	l.mu.Lock()
	l.erasing[name]++
	if l.now == name {
		l.cancel() // it may wait for the lock that the caller holds
		idle := l.idle
		l.mu.Unlock()
		<-idle
	} else {
		l.mu.Unlock()
	}
	done := func() {
		l.mu.Lock()
		if l.erasing[name]--; l.erasing[name] == 0 {
			delete(l.erasing, name)
		}
		l.mu.Unlock()
		l.Changed(scope)
	}
	dir := filepath.Join(l.dir, name)
	err := os.RemoveAll(dir)
	_ = os.Remove(filepath.Dir(dir)) // of the run, if it is empty
	if err != nil {
		done()
		return nil, abi.WrapError(abi.CodeUnavailable, "the copy of the scope's files cannot be removed: "+err.Error(), err).
			WithHint("nothing was erased; remove " + dir + " and ask again")
	}
	return done, nil
}

// Warnings are those for health answers.
func (l *Live) Warnings() (list []string) {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.edited); n > 0 {
		list = append(list, fmt.Sprintf("files_edited: a copy of the memory was edited by hand: memory is unchanged, and the "+
			"edit is kept in %s (%d in all)", l.edited[n-1], n))
	}
	for name, why := range l.failed {
		list = append(list, fmt.Sprintf("files_behind: the copy in %s is not up to date: %s", filepath.Join(l.dir, name), why))
		break
	}
	return list
}

// Pauses between updates: a scope's copy takes at most a fifth of the time, however long its history is.
const (
	pauseFactor  = 4
	longestPause = time.Minute
	retryPause   = 10 * time.Second
)

// run makes copies until ctx ends.
func (l *Live) run(ctx context.Context) {
	defer close(l.done)
	for ctx.Err() == nil {
		began := time.Now()
		pause, worked := l.next(ctx)
		if !worked {
			select {
			case <-l.wake:
			case <-ctx.Done():
			}
			continue
		}
		timer := time.NewTimer(max(pause, min(pauseFactor*time.Since(began), longestPause)))
		select {
		case <-timer.C:
		case <-l.hurry:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// next makes one copy that is due. pause is how long to wait after a failure.
func (l *Live) next(ctx context.Context) (pause time.Duration, worked bool) {
	l.mu.Lock()
	all := l.all
	l.mu.Unlock()
	if all > 0 {
		if err := l.markAll(ctx); err != nil {
			l.options.Logger.Warn("copies of files: "+err.Error(), "folder", l.dir)
			l.mu.Lock()
			l.failed[""] = err.Error()
			l.mu.Unlock()
			return retryPause, !l.hurrying()
		}
	}
	l.mu.Lock()
	delete(l.failed, "")
	if l.all == all { // no other provider serves since
		l.all = 0
	}
	for name, scope := range l.dirty {
		if l.erasing[name] > 0 || l.failed[name] != "" && l.hurrying() {
			continue
		}
		delete(l.dirty, name)
		var within context.Context
		within, l.cancel = context.WithCancel(ctx)
		l.now, l.idle = name, make(chan struct{})
		l.mu.Unlock()
		edited, err := l.copy(within, scope)
		l.mu.Lock()
		erased := within.Err() != nil
		l.cancel()
		l.now = ""
		close(l.idle)
		l.edited = append(l.edited, edited...)
		switch {
		case err == nil:
			delete(l.failed, name)
		case erased: // it is made again afterwards
		default:
			l.failed[name] = err.Error()
			l.dirty[name] = scope
			pause = retryPause
		}
		l.mu.Unlock()
		for _, path := range edited {
			l.options.Logger.Warn("a copy of the memory was edited by hand: memory is unchanged, and the edit is kept", "in", path)
		}
		if pause > 0 {
			l.options.Logger.Warn("copy of files: "+err.Error(), "folder", filepath.Join(l.dir, name))
		}
		return pause, true
	}
	l.mu.Unlock()
	return 0, false
}

// hurrying reports whether Close waits for the copies.
func (l *Live) hurrying() bool {
	select {
	case <-l.hurry:
		return true
	default:
		return false
	}
}

// markAll marks every scope of the serving provider, and removes the copies of other providers.
func (l *Live) markAll(ctx context.Context) error {
	provider, offers := l.serving(ctx)
	served := map[string]bool{}
	if err := l.writeStatus(status{Provider: provider}); err != nil {
		return err
	}
	for after := ""; offers; {
		page, err := l.slot.ListScopes(ctx, report.ScopeQuery{After: after})
		if err != nil {
			return err
		}
		l.mu.Lock()
		for _, s := range page.Scopes {
			served[folderOf(s.Scope)] = true
			l.dirty[folderOf(s.Scope)] = s.Scope
		}
		l.mu.Unlock()
		if after = page.Next; after == "" {
			break
		}
	}
	copies, err := filepath.Glob(filepath.Join(globQuote(l.dir), "*", "*", gitFolderName, recordName))
	if err != nil {
		return err
	}
	for _, path := range copies {
		dir := filepath.Dir(filepath.Dir(path))
		if name, err := filepath.Rel(l.dir, dir); err != nil || served[name] {
			continue
		}
		if err := l.clear(dir); err != nil {
			return err
		}
	}
	return nil
}

// globQuote escapes what would be a pattern.
func globQuote(path string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(path)
}

// copy brings the copy of a scope up to date. edited lists where edits of a person are kept.
func (l *Live) copy(ctx context.Context, scope abi.MemoryScope) (edited []string, err error) {
	dir := filepath.Join(l.dir, folderOf(scope))
	provider, offers := l.serving(ctx)
	var files map[string]string
	if offers {
		if files, err = Of(ctx, l.slot, scope); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, l.clear(dir)
	}
	files = FanOut(files)
	for path := range files {
		if !writable(path) {
			l.options.Logger.Warn("a file is not copied: its name is not allowed", "folder", dir, "file", path)
			delete(files, path)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := openFolder(dir, true)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if f.Provider != "" && f.Provider != provider { // another provider's history
		if err := f.clear(); err != nil {
			return f.edited, err
		}
		f.close()
		before := f.edited
		if f, err = openFolder(dir, true); err != nil {
			return before, err
		}
		defer f.close()
		f.edited = before
	}
	f.Provider, f.Scope = provider, scope
	err = f.update(files, l.options.Now())
	return f.edited, err
}

// clear removes a copy, except for files that a person edited.
func (l *Live) clear(dir string) error {
	f, err := openFolder(dir, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = f.clear()
	f.close()
	l.mu.Lock()
	l.edited = append(l.edited, f.edited...)
	l.mu.Unlock()
	_ = os.Remove(dir) // if it is empty
	_ = os.Remove(filepath.Dir(dir))
	return err
}

// serving returns the serving provider, and whether it has the query "files".
func (l *Live) serving(ctx context.Context) (provider string, offers bool) {
	c, err := l.slot.Capabilities(ctx)
	if err != nil {
		return "", false
	}
	return c.Provider, slices.ContainsFunc(c.NativeQueries, func(d abi.NativeDecl) bool { return d.Name == Query })
}

// Offered reports whether the serving provider has files to copy.
func (l *Live) Offered(ctx context.Context) bool {
	_, offers := l.serving(host.WithOrigin(ctx, host.OriginFiles))
	return offers
}

func (l *Live) readStatus() (s status) {
	text, err := os.ReadFile(filepath.Join(l.dir, statusName))
	if err != nil || json.Unmarshal(text, &s) != nil {
		return status{}
	}
	return s
}

func (l *Live) writeStatus(s status) error {
	text, err := json.Marshal(&s)
	if err != nil {
		return err
	}
	if err := wholefile.Write(filepath.Join(l.dir, statusName), text, 0o600); err != nil {
		return abi.WrapError(abi.CodeUnavailable, l.dir+": "+err.Error(), err)
	}
	return nil
}
