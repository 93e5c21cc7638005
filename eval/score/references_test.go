package score

import (
	"testing"

	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/internal/text/tokens"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A pack that names no evidence has no ceiling: 0 would be a figure of something that was not measured.
func TestEvidenceIsAReferenceOnlyWhereThePackNamesSome(t *testing.T) {
	for name, groups := range map[string][][]string{"evidence": {{"e1"}}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			person := &persona{}
			p := &probe{Probe: &pack.Probe{AfterSession: 1}, persona: person, groups: groups}
			person.probes = []*probe{p}
			counter, err := tokens.New("bytes4")
			require.NoError(t, err)
			r := newReferences(&timeline{probes: person.probes}, 1, []int64{100}, counter, nil)
			r.persona(person, []renderedEvent{{id: "e1", text: "Ann: I drink tea.", session: 1}})
			assert.NotNil(t, r.random.reference[0][0])
			if groups == nil {
				assert.Nil(t, r.golden.reference[0][0])
				assert.Equal(t, "not computed: no answerable probe names evidence", r.golden.reason)
				return
			}
			assert.NotNil(t, r.golden.reference[0][0])
			assert.Empty(t, r.golden.reason)
		})
	}
}
