package pack

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Writer writes a pack, persona by persona: call Persona, then write its events and probes in order, then the next
// persona. Close seals the pack.
type Writer struct {
	Manifest Manifest

	path   string // as requested
	folder string // where the files are written
	made   bool   // the folder did not exist before
	events *output
	probes *output
	// preferences is nil until the first one is written.
	preferences *output
	// people is nil until the first one is written.
	people *output

	labels   map[string]bool
	clusters map[string]bool
	current  *Persona
	session  int
}

// output is one file being written.
type output struct {
	file   *os.File
	buffer *bufio.Writer
}

// Create starts a pack at path: a folder, which must be empty or not exist, or a .tar.zst. The caller sets name,
// source, builder and timestamps in the manifest; the rest is computed.
func Create(path string, manifest Manifest) (*Writer, error) {
	w := &Writer{Manifest: manifest, path: path, folder: path, labels: map[string]bool{}, clusters: map[string]bool{}}
	w.Manifest.Pack = Version
	var err error
	if strings.HasSuffix(path, Archive) {
		w.folder, err = os.MkdirTemp(filepath.Dir(path), ".pack-*")
	} else {
		_, missing := os.Stat(path)
		w.made, err = os.IsNotExist(missing), emptyFolder(path)
	}
	if err == nil {
		w.events, err = openOutput(w.folder, EventsFile)
	}
	if err == nil {
		w.probes, err = openOutput(w.folder, ProbesFile)
	}
	if err != nil {
		w.Abort()
		return nil, unreadable(err)
	}
	return w, nil
}

// emptyFolder creates a folder, or accepts an existing empty one.
func emptyFolder(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	there, err := os.ReadDir(path)
	if err == nil && len(there) > 0 {
		err = wrong("%s is not empty", path).WithHint("name a new folder, or remove this one first")
	}
	return err
}

func openOutput(folder, name string) (*output, error) {
	f, err := os.OpenFile(filepath.Join(folder, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return &output{f, bufio.NewWriterSize(f, 256<<10)}, nil
}

// Persona starts the next persona.
func (w *Writer) Persona(personaID, cluster string) {
	w.Manifest.Personas = append(w.Manifest.Personas, Persona{PersonaID: personaID, Cluster: cluster})
	w.current, w.session = &w.Manifest.Personas[len(w.Manifest.Personas)-1], 0
	w.Manifest.Counts.Personas++
	if !w.clusters[cluster] {
		w.clusters[cluster] = true
		w.Manifest.Counts.Clusters++
	}
}

// Event writes the persona's next event.
func (w *Writer) Event(e *Event) error {
	e.PersonaID = w.current.PersonaID
	if e.SessionIndex != w.session {
		w.session = e.SessionIndex
		w.current.Sessions++
		w.Manifest.Counts.Sessions++
	}
	w.current.Events++
	w.Manifest.Counts.Events++
	return w.events.line(e)
}

// Probe writes the persona's next probe.
func (w *Writer) Probe(p *Probe) error {
	p.PersonaID = w.current.PersonaID
	w.labels[p.Label] = true
	w.current.Probes++
	w.Manifest.Counts.Probes++
	return w.probes.line(p)
}

// Preference writes the persona's next preference. The pack's first one creates preferences.jsonl.
func (w *Writer) Preference(p *Preference) error {
	p.PersonaID = w.current.PersonaID
	if w.preferences == nil {
		var err error
		if w.preferences, err = openOutput(w.folder, PreferencesFile); err != nil {
			return unreadable(err)
		}
	}
	w.Manifest.Counts.Preferences++
	return w.preferences.line(p)
}

// Person writes what may be said of the persona, at most once. The pack's first one creates people.jsonl.
func (w *Writer) Person(p *Person) error {
	p.PersonaID = w.current.PersonaID
	if w.people == nil {
		var err error
		if w.people, err = openOutput(w.folder, PeopleFile); err != nil {
			return unreadable(err)
		}
	}
	return w.people.line(p)
}

// outputs returns the open files.
func (w *Writer) outputs() []*output {
	return slices.DeleteFunc([]*output{w.events, w.probes, w.preferences, w.people}, func(o *output) bool { return o == nil })
}

func (o *output) line(v any) error {
	e := json.NewEncoder(o.buffer)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return unreadable(err)
	}
	return nil
}

// Repair counts a repaired fault of the source, with its place.
func (w *Writer) Repair(kind, place string) {
	i := slices.IndexFunc(w.Manifest.Repairs, func(r Repair) bool { return r.Kind == kind })
	if i < 0 {
		i = len(w.Manifest.Repairs)
		w.Manifest.Repairs = append(w.Manifest.Repairs, Repair{Kind: kind})
	}
	r := &w.Manifest.Repairs[i]
	r.Count++
	if len(r.Examples) < MaxPlaces {
		r.Examples = append(r.Examples, place)
	}
}

// Close writes conditions (if not nil) and pack.json, and archives the folder if the path requires that.
func (w *Writer) Close(conditions map[string]json.RawMessage) error {
	for _, o := range w.outputs() {
		if err := o.buffer.Flush(); err != nil {
			return unreadable(err)
		}
		if err := o.file.Close(); err != nil {
			return unreadable(err)
		}
	}
	if conditions != nil {
		text, err := json.MarshalIndent(conditions, "", "  ")
		if err == nil {
			err = os.WriteFile(filepath.Join(w.folder, ConditionsFile), append(text, '\n'), 0o644)
		}
		if err != nil {
			return unreadable(err)
		}
	}
	w.Manifest.Labels = []string{}
	for label := range w.labels {
		w.Manifest.Labels = append(w.Manifest.Labels, label)
	}
	slices.Sort(w.Manifest.Labels)
	if err := w.seal(); err != nil {
		return err
	}
	if w.folder == w.path {
		return nil
	}
	err := archive(w.folder, w.path)
	_ = os.RemoveAll(w.folder)
	return err
}

// seal hashes the content and writes pack.json.
func (w *Writer) seal() error {
	content := sha256.New()
	for _, name := range []string{EventsFile, ProbesFile, ConditionsFile, PreferencesFile, PeopleFile} {
		f, err := os.Open(filepath.Join(w.folder, name))
		if os.IsNotExist(err) && name != EventsFile && name != ProbesFile {
			continue
		}
		if err != nil {
			return unreadable(err)
		}
		info, err := f.Stat()
		if err == nil {
			header(content, name, info.Size())
			_, err = io.Copy(content, f)
		}
		_ = f.Close()
		if err != nil {
			return unreadable(err)
		}
	}
	w.Manifest.ContentSHA256 = hex.EncodeToString(content.Sum(nil))
	text, err := json.MarshalIndent(&w.Manifest, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(w.folder, ManifestFile), append(text, '\n'), 0o644)
	}
	if err != nil {
		return unreadable(err)
	}
	return nil
}

// Abort removes everything that was written.
func (w *Writer) Abort() {
	for _, o := range w.outputs() {
		_ = o.file.Close()
		_ = os.Remove(o.file.Name())
	}
	switch {
	case w.folder != w.path:
		_ = os.RemoveAll(w.folder)
	case w.made:
		_ = os.Remove(w.folder)
	}
}
