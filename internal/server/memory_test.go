package server

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/go-logr/logr"
)

func TestMemoryLimitOfTheCgroup(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		rule  string
		files map[string]string
		want  int64
	}{
		{"v2: the limit of the group", map[string]string{
			"proc/self/cgroup": "0::/pod\n", "sys/fs/cgroup/pod/memory.max": "536870912\n",
		}, 512 << 20},
		{"v2: that of a parent group, if it is smaller", map[string]string{
			"proc/self/cgroup": "0::/pods/a/b\n", "sys/fs/cgroup/pods/a/b/memory.max": "max\n",
			"sys/fs/cgroup/pods/memory.max": "268435456\n", "sys/fs/cgroup/pods/a/memory.max": "536870912\n",
		}, 256 << 20},
		{"v2: in a container, the path is that of the host", map[string]string{
			"proc/self/cgroup": "0::/../../host/path\n", "sys/fs/cgroup/memory.max": "268435456\n",
		}, 256 << 20},
		{"v2: no limit", map[string]string{"proc/self/cgroup": "0::/pod\n", "sys/fs/cgroup/pod/memory.max": "max\n"}, 0},
		{"v1", map[string]string{
			"proc/self/cgroup":                                    "9:cpu,cpuacct:/x\n7:memory:/docker/a\n0::/y\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n",
			"sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes": "134217728\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes":        "67108864\n",
		}, 128 << 20},
		{"v1: no limit is a large number", map[string]string{
			"proc/self/cgroup": "7:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0},
		{"an implausible limit is ignored", map[string]string{
			"proc/self/cgroup": "0::/\nx\n", "sys/fs/cgroup/memory.max": "-1\n",
		}, 0},
		{"no cgroups", nil, 0},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got := cgroupMemory(rootWith(t, tc.files)); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// The test changes the limit of the process, so it is not parallel.
func TestLimitMemoryKeepsGOMEMLIMIT(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	root := rootWith(t, map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"})
	t.Setenv("GOMEMLIMIT", "2GiB")
	limitMemory(root, logr.Discard())
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("with GOMEMLIMIT: got %d, want %d", got, before)
	}
	if err := os.Unsetenv("GOMEMLIMIT"); err != nil {
		t.Fatal(err)
	}
	limitMemory(root, logr.Discard())
	if got, want := debug.SetMemoryLimit(-1), int64(1<<30/10*9); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

func rootWith(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
