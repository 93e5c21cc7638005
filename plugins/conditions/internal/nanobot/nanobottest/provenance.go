package nanobottest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

// Provenance runs the operation in the rig's scope.
func (r *Rig) Provenance(request abi.ProvenanceRequest) (*abi.Provenance, error) {
	request.Scope = r.Scope
	return sdktest.Do(r.Host, abi.OpProvenance, r.Scope, r.module.Provenance, &request)
}

func (m Module) s16(t *testing.T) {
	b := m.NewRig(t, "")
	b.Record(b.Turn("s1", "My cat is called Zorvex."))
	b.Record(b.Turn("s2", "I like oolong tea."))
	b.Record(b.Turn("end", "We speak of rain."))
	b.Wait()
	b.Record(b.Turn("new", "And of snow."))
	long := abi.ProvenanceRequest{From: "2020-01-01T00:00:00Z", To: "2100-01-01T00:00:00Z"}
	whole, err := b.Provenance(long)
	require.NoError(t, err)
	require.NotEmpty(t, whole.Items)
	assert.Empty(t, whole.NextCursor)
	var paged []abi.Raw
	for page := long; ; {
		page.Limit = 1
		p, err := b.Provenance(page)
		require.NoError(t, err)
		for _, i := range p.Items {
			paged = append(paged, i.Native)
		}
		if page.Cursor = p.NextCursor; page.Cursor == "" {
			break
		}
	}
	for n, i := range whole.Items {
		assert.Equal(t, string(i.Native), string(paged[n]))
		assert.NotEmpty(t, i.Evidence.Text)
		one, err := b.Provenance(abi.ProvenanceRequest{NativeID: i.Evidence.NativeID})
		require.NoError(t, err)
		assert.Equal(t, i.Native, one.Items[0].Native)
		for _, id := range i.Evidence.SourceEventIDs {
			of, err := b.Provenance(abi.ProvenanceRequest{EventID: id})
			require.NoError(t, err)
			assert.NotEmpty(t, of.Items, id)
		}
	}
	assert.Len(t, paged, len(whole.Items))
	none, err := b.Provenance(abi.ProvenanceRequest{From: "2001-01-01T00:00:00Z", To: "2001-01-02T00:00:00Z"})
	require.NoError(t, err)
	assert.Empty(t, none.Items)
	none, err = b.Provenance(abi.ProvenanceRequest{EventID: "e4"})
	require.NoError(t, err, "of which nothing was made yet")
	assert.Empty(t, none.Items)
	for _, r := range []abi.ProvenanceRequest{{EventID: "unknown"}, {NativeID: "history#99"}} {
		_, err := b.Provenance(r)
		assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err))
	}
}
