package simulate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/pack"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var tea = pack.Preferences{
	{Attribute: "tea", Context: "work", Value: "Sencha", From: "2026-03-01T10:00:00Z", Until: "2026-03-02T10:00:00Z", Evidence: []string{"a"}},
	{Attribute: "tea", Context: "home", Value: "Mint", From: "2026-03-01T10:00:00Z", Evidence: []string{"b"}},
	{Attribute: "tea", Context: "work", Value: "Assam Gold", From: "2026-03-02T10:00:00Z", Evidence: []string{"c"}},
}

func teaAtWork() *Setting {
	return NewSetting(&pack.Probe{ProbeID: "q", Context: "work", Attribute: "tea", AsOf: "2026-03-03T10:00:00Z",
		Query: "Which tea?", Opening: "I am at work. Tea, please."}, tea)
}

func TestTheSettingIsWhatHoldsAtThatTime(t *testing.T) {
	s := teaAtWork()
	assert.Equal(t, "Assam Gold", s.Value)
	assert.Equal(t, []string{"Sencha"}, s.Stale)
	assert.Equal(t, []string{"Mint"}, s.Elsewhere)
	assert.True(t, s.Differs)
	assert.True(t, s.Changed())

	unknown := NewSetting(&pack.Probe{ProbeID: "q", Attribute: "shoes", AsOf: "2026-03-03T10:00:00Z", Query: "Size?"}, tea)
	assert.Empty(t, unknown.Value)
	assert.Equal(t, "Size?", unknown.Opening)
	assert.False(t, unknown.Differs || unknown.Changed())
}

func TestTheUseOfAnAnswer(t *testing.T) {
	s := teaAtWork()
	for text, want := range map[string]Use{
		"One assam  gold, coming.":          UseCurrent,
		"Sencha as always.":                 UseStale,
		"Here is your mint tea.":            UseElsewhere,
		"Sencha or mint?":                   UseStale,
		"Assam Gold or sencha?":             UseSeveral,
		"Peppermint and Senchara":           UseNone,
		"What would you like?":              UseNone,
		"":                                  UseNone,
		"ASSAM\nGOLD":                       UseCurrent,
		"xAssam Gold, then “Assam Gold”!":   UseCurrent,
		"Assam Golden, éAssam Gold":         UseNone,
		"not sencha any more: *assam gold*": UseSeveral,
	} {
		assert.Equal(t, want, s.UseOf(text), text)
	}
}

func TestAScriptedUserReactsByRule(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string
		want    string
	}{
		"right at once":         {[]string{"Assam Gold."}, "accept"},
		"stale, then right":     {[]string{"Sencha.", "Assam Gold."}, "correct accept"},
		"another context's":     {[]string{"Mint.", "Assam Gold."}, "correct accept"},
		"asked which":           {[]string{"Mint or Assam Gold?", "Assam Gold."}, "repeat accept"},
		"none, none, then told": {[]string{"", "What?", "Assam Gold."}, "repeat correct accept"},
		"never":                 {[]string{"Mint.", "Mint.", "Mint.", "Mint."}, "correct correct correct give_up"},
	} {
		t.Run(name, func(t *testing.T) {
			conversation, err := Scripted{}.Open(t.Context(), teaAtWork())
			require.NoError(t, err)
			var actions []string
			for _, answer := range c.answers {
				r, err := conversation.React(t.Context(), answer)
				require.NoError(t, err)
				actions = append(actions, string(r.Action))
				assert.Equal(t, r.Action == journal.ActionAccept || r.Action == journal.ActionGiveUp, r.Text == "")
			}
			assert.Equal(t, c.want, strings.Join(actions, " "))
		})
	}
}

func TestAScriptedUserWantsToHearThatNothingIsKnown(t *testing.T) {
	setting := NewSetting(&pack.Probe{ProbeID: "q", Query: "What is my shoe size?"}, tea)
	conversation, err := Scripted{Turns: 2}.Open(t.Context(), setting)
	require.NoError(t, err)
	r, err := conversation.React(t.Context(), "It is 43.")
	require.NoError(t, err)
	assert.Equal(t, journal.ActionRepeat, r.Action)
	r, err = conversation.React(t.Context(), "I do not know that.")
	require.NoError(t, err)
	assert.Equal(t, journal.ActionAccept, r.Action)
}

// With random preferences and answers, no text of the user before the first answer, and none before the first
// correction, names the preference in force.
func TestAScriptedUserNeverSaysThePreferenceFirst(t *testing.T) {
	random := rand.New(rand.NewPCG(47, 0))
	words := strings.Fields("Zor quel Brin Tav mirk a the I like tea. Please, é 7 No")
	text := func() string {
		var list []string
		for range random.IntN(6) {
			list = append(list, words[random.IntN(len(words))])
		}
		return strings.Join(list, " ")
	}
	corrected := 0
	for n := range 2000 {
		value := fmt.Sprintf("Value%d", random.IntN(5))
		setting := &Setting{Opening: text(), Value: value, Stale: []string{"Former1"}, Elsewhere: []string{"Elsewhere1"}}
		conversation, err := Scripted{Turns: 1 + random.IntN(6)}.Open(t.Context(), setting)
		require.NoError(t, err)
		require.False(t, Names(conversation.Opening(), value), n)
		for {
			answer := text()
			if random.IntN(3) == 0 {
				answer += " " + []string{value, "Former1", "Elsewhere1"}[random.IntN(3)]
			}
			r, err := conversation.React(t.Context(), answer)
			require.NoError(t, err)
			require.Equal(t, r.Action == journal.ActionCorrect, Names(r.Text, value), "%s: %s", r.Action, r.Text)
			if r.Action == journal.ActionCorrect {
				corrected++
			}
			if r.Text == "" {
				break
			}
		}
	}
	assert.Greater(t, corrected, 500)
}
