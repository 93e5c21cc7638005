package bench

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// field is a field of a message: a number, or bytes.
func field(message []byte, number int, value any) []byte {
	switch v := value.(type) {
	case int:
		return binary.AppendUvarint(binary.AppendUvarint(message, uint64(number)<<3), uint64(v))
	case []byte:
		message = binary.AppendUvarint(binary.AppendUvarint(message, uint64(number)<<3|2), uint64(len(v)))
		return append(message, v...)
	}
	panic("neither")
}

func zipped(t testing.TB, message []byte) *bytes.Buffer {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(message)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return &b
}

// samples are what Go's profiler would write of stacks, innermost first, each with a count and with a label or "".
func samples(stacks [][]string, counts []int, labels []string) []byte {
	texts := []string{""}
	at := func(text string) int {
		for i, s := range texts {
			if s == text {
				return i
			}
		}
		texts = append(texts, text)
		return len(texts) - 1
	}
	var m []byte
	known := map[string]bool{}
	for i, functions := range stacks {
		var locations []byte
		for _, f := range functions {
			id := at(f)
			locations = binary.AppendUvarint(locations, uint64(id))
			if !known[f] {
				known[f] = true
				m = field(m, 4, field(field(nil, 1, id), 4, field(nil, 1, id)))
				m = field(m, 5, field(field(nil, 1, id), 2, id))
			}
		}
		sample := field(field(nil, 1, locations), 2, binary.AppendUvarint(binary.AppendUvarint(nil, uint64(counts[i])), 10_000_000))
		if labels[i] != "" {
			sample = field(sample, 3, field(field(nil, 1, at(labels[i])), 2, at("fake")))
		}
		m = field(m, 2, sample)
	}
	for _, s := range texts {
		m = field(m, 6, []byte(s))
	}
	return m
}

func TestProfileCountsFunctions(t *testing.T) {
	const host = "github.com/memhost/memhost/host."
	m := samples([][]string{
		{"runtime.memmove", host + "run[go.shape.string]", "github.com/memhost/memhost/internal/bench.profiles", "runtime.main"},
		{"runtime._ExternalCode"},
		{host + "leaf", host + "leaf", host + "run[go.shape.string]"},
		{"net/http.serve"},
	}, []int{2, 5, 1, 100}, []string{"", "", "", backendLabel})
	p, err := summarize("an operation", zipped(t, m))
	require.NoError(t, err)
	assert.Equal(t, 8, p.Samples, "those of the backend do not count")
	assert.Equal(t, []ProfileLine{{"the guest's code", 62.5, 62.5}, {"runtime.memmove", 25, 25}, {"host.leaf", 12.5, 12.5}}, p.Flat)
	assert.Equal(t, []ProfileLine{{"the guest's code", 62.5, 62.5}, {"host.run", 0, 37.5}, {"runtime.memmove", 25, 25}, {"host.leaf", 12.5, 12.5}}, p.Cum, "a function that calls itself counts once")
	assert.Equal(t, [4]string{"", "", "host.leaf", "12.5 %"}, p.Lines()[3])

	_, err = summarize("cut", zipped(t, m[:len(m)-3]))
	require.ErrorIs(t, err, errNoProfile)
	_, err = summarize("no profile", strings.NewReader("text"))
	require.Error(t, err)
}

func FuzzProfile(f *testing.F) {
	f.Add(samples([][]string{{"a", "b"}}, []int{1}, []string{"x"}))
	f.Add([]byte{0x12, 0xff})
	f.Fuzz(func(t *testing.T, message []byte) {
		stacks, err := readStacks(zipped(t, message))
		if err != nil {
			require.Empty(t, stacks)
		}
	})
}
