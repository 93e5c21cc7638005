package mem0

import (
	"crypto/md5" //nolint:gosec // mem0's hash of a text is MD5
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/memhost/memhost/internal/test/fakes/embed"
)

// row is one stored memory.
type row struct {
	id, text, hash   string
	user, agent, run string
	role, attributed string
	created, updated string
	expiration       string
	cleared          bool // expiration_date was set to null: it is shown as that
	metadata         map[string]any
	vector           []float32
	words            []string
}

func (r *row) setText(text string) {
	sum := md5.Sum([]byte(text)) //nolint:gosec // as above
	r.text, r.hash, r.vector, r.words = text, hex.EncodeToString(sum[:]), vector(text), embed.Words(text)
}

// functionWords say nothing of what a text is about.
var functionWords = strings.Fields("a an the and or but i me my is am are was it of to in on at for with from does " +
	"do what which where who how when")

// vector is a text's place among others: by its words without function words, symbols and emoji as words. Each word
// counts at two places, so that two words which share one by chance come less near than two that are the same.
func vector(text string) []float32 {
	words := slices.DeleteFunc(embed.Words(text), func(w string) bool { return slices.Contains(functionWords, w) })
	for _, r := range text {
		if unicode.Is(unicode.So, r) {
			words = append(words, "symbol"+strconv.Itoa(int(r)))
		}
	}
	for _, w := range words {
		words = append(words, w+"2")
	}
	return embed.Text(strings.Join(words, " "))
}

// hasIDs compares the ids that are given. "*" is any.
func (r *row) hasIDs(ids map[string]string) bool {
	for name, id := range ids {
		own := map[string]string{"user_id": r.user, "agent_id": r.agent, "run_id": r.run}[name]
		if own == "" || id != "*" && own != id {
			return false
		}
	}
	return true
}

func (r *row) expired(now time.Time) bool {
	return r.expiration != "" && r.expiration < now.UTC().Format("2006-01-02")
}

// item is a row as searches and lists show it. Metadata is null if only ids were given.
func (r *row) item(score map[string]any) map[string]any {
	item := map[string]any{"id": r.id, "memory": r.text, "hash": r.hash, "metadata": nil, "created_at": r.created,
		"updated_at": r.updated}
	if len(r.metadata) > 0 {
		item["metadata"] = r.metadata
	}
	for key, value := range map[string]string{"user_id": r.user, "agent_id": r.agent, "run_id": r.run, "role": r.role,
		"attributed_to": r.attributed, "expiration_date": r.expiration} {
		if value != "" {
			item[key] = value
		}
	}
	if r.cleared {
		item["expiration_date"] = nil
	}
	maps.Copy(item, score)
	return item
}

// wholeItem is a row as the list of everything shows it.
func (r *row) wholeItem() map[string]any {
	metadata := maps.Clone(r.metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["text_lemmatized"] = r.text
	for key, value := range map[string]string{"attributed_to": r.attributed, "role": r.role} {
		if value != "" {
			metadata[key] = value
		}
	}
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return map[string]any{"id": r.id, "memory": r.text, "user_id": null(r.user), "agent_id": null(r.agent),
		"run_id": null(r.run), "hash": r.hash,
		"expiration_date": null(r.expiration), "metadata": metadata, "created_at": r.created, "updated_at": r.updated}
}

// reservedKeys are those of mem0's own payload: what metadata says there is overwritten, or becomes mem0's.
var reservedKeys = []string{"data", "hash", "text_lemmatized", "created_at", "updated_at", "expiration_date", "role",
	"user_id", "agent_id", "run_id", "actor_id", "attributed_to"}

// newRow makes a row of an add.
func (s *OSS) newRow(a *addRequest, text, role, attributed string) *row {
	r := &row{id: s.id(), role: role, attributed: attributed, metadata: map[string]any{}, expiration: a.Expiration,
		user: a.ids["user_id"], agent: a.ids["agent_id"], run: a.ids["run_id"]}
	r.setText(text)
	for key, value := range a.Metadata {
		if !slices.Contains(reservedKeys, key) {
			r.metadata[key] = value
		}
	}
	r.created = s.now().UTC().Format(stamp)
	if given, ok := a.Metadata["created_at"].(string); ok {
		r.created = given // any text
	}
	if given, ok := a.Metadata["expiration_date"].(string); ok {
		r.expiration = given
	}
	if given, ok := a.Metadata["attributed_to"].(string); ok && attributed == "" {
		r.attributed = given
	}
	r.updated = r.created
	return r
}
