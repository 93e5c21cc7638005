package serving

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheCgroupsLimitIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no Linux":        {nil, 0},
		"version 2":       {map[string]string{"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20},
		"version 2, none": {map[string]string{"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "max\n"}, 0},
		"version 2, a slice with less": {map[string]string{"/proc/self/cgroup": "0::/a/b\n",
			"/sys/fs/cgroup/a/memory.max": "1000\n", "/sys/fs/cgroup/a/b/memory.max": "2000\n"}, 1000},
		"version 1": {map[string]string{"/proc/self/cgroup": "5:cpu:/x\n4:memory:/docker/1\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes": "134217728\n", "/sys/fs/cgroup/cpu/memory.max": "1\n"}, 128 << 20},
		"version 1, none": {map[string]string{"/proc/self/cgroup": "4:memory:/\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
	} {
		require.Equal(t, c.want, groupMemory(func(path string) ([]byte, error) {
			text, ok := c.files[path]
			if !ok {
				return nil, os.ErrNotExist
			}
			return []byte(text), nil
		}), name)
	}
}

func TestAModuleGetsAQuarterOfASmallContainer(t *testing.T) {
	for _, c := range []struct{ configured, group, want int64 }{
		{128 << 20, 0, 128 << 20}, {128 << 20, 4 << 30, 128 << 20}, {128 << 20, 512 << 20, 128 << 20},
		{128 << 20, 128 << 20, 32 << 20}, {128 << 20, 32 << 20, 16 << 20}, {64 << 20, 128 << 20, 64 << 20},
	} {
		require.Equal(t, c.want, guestMemory(c.configured, c.group), c)
	}
}

func TestCallsGetWhatTheSlotDoesNotNeed(t *testing.T) {
	for _, c := range []struct{ configured, process, want int64 }{
		{0, 0, 0}, {7, 0, 7}, {7, 512 << 20, 7}, {0, 512 << 20, 416 << 20}, {0, 128 << 20, 32 << 20}, {0, 64 << 20, 16 << 20},
	} {
		require.Equal(t, c.want, callMemory(c.configured, c.process), c)
	}
}
