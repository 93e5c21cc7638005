package main

import (
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// Forget removes the history entries that were made from forgotten events only. If Dream has read one, it also removes
// the versions of the files and the stored runs, which may quote it. The files themselves are removed only if they are
// named.
func (m *memory) Forget(f *nanobot.Forgetting) {
	d := model.ReadProgress(m.State, dreamKey)
	dreamt := false
	f.History(historyLog, nil, func(_ int64, data []byte) (string, []string) {
		x, ok := decodeEntry(data)
		if !ok {
			return "", nil
		}
		id := "history#" + sdk.Itoa(x.cursor)
		dreamt = dreamt || x.cursor <= d.Cursor && (f.Names(id) || f.Of(x.events) > 0)
		return id, x.events
	})
	dreamt = dreamt || f.Read && m.settings.maxEntries > 0 && d.Cursor > 0 // the entry may no longer exist
	files := m.folder()
	for _, x := range files {
		id := x.path + "@" + sdk.Digest256(x.text)[:8]
		switch {
		case x.text == "":
		case f.RemoveWhole("long_term", id):
			x.text, dreamt = "", true
		case dreamt:
			f.Remains(id + ": a model may have written parts of it from these events; forgetting this native id removes it")
		}
	}
	m.save(files)
	d.Failure = model.Failure{} // it may quote the model
	d.Save(m.State, dreamKey)   // a run in progress has read forgotten entries: it has to start over
	if !dreamt {
		return
	}
	m.Delete("version") // the versions and their log
	m.Delete("blob/")
	m.Delete("file/" + dreamDir)
}
