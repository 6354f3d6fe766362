package inventory

import (
	"slices"
	"testing"
)

// givesAtLeast reports whether a set of ways out has at least another: the node gives everything that lies on it.
func givesAtLeast(all []Escape, want Escape) bool {
	return slices.ContainsFunc(all, func(g Escape) bool {
		return (g.Effect == want.Effect || g.Effect == TakesNode) && (g.DependsOn == "" || want.DependsOn != "")
	})
}

// For each row, and the folders above and below it: a mount that may write gives at least what one that may only read
// gives, and a mount above a folder at least what a mount of the folder gives.
func TestWriteIncludesReadForEachRow(t *testing.T) {
	for prefix, row := range rowsFor(both) {
		for _, folder := range []string{prefix, prefix + "/below", prefix + "/below/it"} {
			folder := hostFolder(folder)
			read, _ := waysOf(folder, reads)
			write, known := waysOf(folder, both)
			for _, g := range read {
				if !givesAtLeast(write, g) {
					t.Errorf("%s: read gives %v, write %v", folder, read, write)
				}
			}
			if !known && row.effect != LinksLogs {
				t.Errorf("%s: no row is about it", folder)
			}
		}
		for _, access := range []mountAccess{reads, both} {
			whole, _ := waysOf(prefix, access)
			for above := parent(prefix); above != ""; above = parent(above) {
				all, _ := waysOf(above, access)
				for _, g := range whole {
					if !givesAtLeast(all, g) {
						t.Errorf("%s gives %v, and %s above it %v", prefix, whole, above, all)
					}
				}
			}
		}
	}
}

func parent(folder string) string {
	for i := len(folder) - 1; i > 0; i-- {
		if folder[i] == '/' && folder[:i] != "//." {
			return folder[:i]
		}
	}
	if len(folder) > 1 && folder[0] == '/' && folder[1] != '/' {
		return "/"
	}
	return ""
}

func TestHostPaths(t *testing.T) {
	node := Escape{Effect: TakesNode}
	possible := func(e Effect, dependsOn string) Escape { return Escape{Effect: e, DependsOn: dependsOn} }
	for _, c := range []struct {
		folder      string
		read, write []Escape
		unknown     bool
	}{
		{
			folder: "/", write: []Escape{
				node,
				{Effect: TakesControlPlane},
				{Effect: TakesCredential},
				{Effect: TakesMounted},
				possible(TakesPods, dependsOnProcesses), possible(LinksLogs, dependsOnLinks),
			},
			read: []Escape{ // sockets
				node,
				{Effect: TakesControlPlane},
				{Effect: TakesCredential},
				{Effect: TakesMounted},
				possible(TakesPods, dependsOnProcesses),
			},
		},
		{
			folder: "/etc", write: []Escape{node, {Effect: TakesControlPlane}, possible(TakesCredential, dependsOnKeyThere)},
			read: []Escape{{Effect: TakesControlPlane}, possible(TakesCredential, dependsOnKeyThere)},
		},
		{
			folder: "/etc/kubernetes/pki", write: []Escape{node, {Effect: TakesControlPlane}, possible(TakesCredential, dependsOnKeyThere)},
			read: []Escape{{Effect: TakesControlPlane}, possible(TakesCredential, dependsOnKeyThere)},
		},
		{folder: "/etc/cron.d", write: []Escape{node}, unknown: true},
		{folder: "/etc/localtime"},
		{folder: "/usr/share/zoneinfo/Europe"},
		{folder: "/usr/local/bin", write: []Escape{node}, unknown: true},
		{folder: "/opt/cni/bin", write: []Escape{node}, unknown: true},
		{folder: "/opt/app", write: []Escape{possible(TakesNode, dependsOnPrograms)}, unknown: true},
		{
			folder: "/root", write: []Escape{node, possible(TakesControlPlane, dependsOnKubeconfig)},
			read: []Escape{possible(TakesControlPlane, dependsOnKubeconfig)}, unknown: true,
		},
		{
			folder: "/var/lib/kubelet", write: []Escape{node, {Effect: TakesCredential}, {Effect: TakesMounted}},
			read: []Escape{{Effect: TakesCredential}, {Effect: TakesMounted}},
		},
		{
			folder: "/var/lib/kubelet/pki/kubelet-client-current.pem", write: []Escape{node, {Effect: TakesCredential}},
			read: []Escape{{Effect: TakesCredential}},
		},
		{folder: "/var/lib/kubelet/pods", write: []Escape{node, {Effect: TakesMounted}}, read: []Escape{{Effect: TakesMounted}}},
		{folder: "/var/lib/kubelet/device-plugins", write: []Escape{possible(TakesNode, dependsOnDeviceUse)}, unknown: true},
		{
			folder: "/var/lib/rancher/k3s/server/tls", write: []Escape{node, {Effect: TakesControlPlane}},
			read: []Escape{{Effect: TakesControlPlane}},
		},
		{
			folder: "/var/lib/rancher/rke2", write: []Escape{node, {Effect: TakesControlPlane}, {Effect: TakesCredential}},
			read: []Escape{{Effect: TakesControlPlane}, {Effect: TakesCredential}},
		},
		{folder: "/var/run/docker.sock", write: []Escape{node}, read: []Escape{node}},
		{folder: "/run/k3s/containerd/containerd.sock", write: []Escape{node}, read: []Escape{node}},
		{folder: "/run/containerd", write: []Escape{node}, read: []Escape{node}},
		{folder: "/run/podman/podman.sock", write: []Escape{node}, read: []Escape{node}},
		{folder: "/run/buildkit/buildkitd.sock", write: []Escape{node}, read: []Escape{node}},
		{folder: "/run/cri-dockerd.sock", write: []Escape{node}, read: []Escape{node}},
		{
			folder: "/run/dbus/system_bus_socket", write: []Escape{possible(TakesNode, dependsOnBus)},
			read: []Escape{possible(TakesNode, dependsOnBus)},
		},
		{
			folder: "/run/systemd/private", write: []Escape{possible(TakesNode, dependsOnBus)},
			read: []Escape{possible(TakesNode, dependsOnBus)},
		},
		{folder: "/proc/sys/kernel/core_pattern", write: []Escape{node}},
		{
			folder: "/proc", write: []Escape{node, possible(TakesPods, dependsOnProcesses)},
			read: []Escape{possible(TakesPods, dependsOnProcesses)},
		},
		{folder: "/proc/sys/net"},
		{folder: "/proc/sys/fs", write: []Escape{possible(TakesNode, dependsOnPrograms)}},
		{folder: "/sys/fs/cgroup", write: []Escape{possible(TakesNode, dependsOnCgroups)}},
		{folder: "/dev", write: []Escape{possible(TakesNode, dependsOnDevices)}, read: []Escape{possible(TakesNode, dependsOnDevices)}},
		{folder: "/var/log/app", write: []Escape{possible(LinksLogs, dependsOnLinks)}, unknown: true},
		{folder: "/var/logs", unknown: true},
		{folder: "/etcetera", unknown: true},
		{folder: "/mnt/data", unknown: true},
		{folder: `C:\`, write: []Escape{
			possible(TakesNode, dependsOnWindows), possible(TakesCredential, dependsOnWindows), possible(TakesMounted, dependsOnWindows),
		}, read: []Escape{possible(TakesCredential, dependsOnWindows), possible(TakesMounted, dependsOnWindows)}},
		{folder: `c:\var\lib\kubelet\pki`, write: []Escape{
			possible(TakesNode, dependsOnWindows), possible(TakesCredential, dependsOnWindows),
		}, read: []Escape{possible(TakesCredential, dependsOnWindows)}},
		{folder: `\\.\pipe\containerd-containerd`, write: []Escape{node}, read: []Escape{node}},
		{folder: `D:\data`, unknown: true},
	} {
		read, known := waysOf(c.folder, reads)
		if !slices.Equal(read, c.read) || known == c.unknown {
			t.Errorf("%s: a read-only mount gives %v, want %v; known: %v", c.folder, read, c.read, known)
		}
		write, _ := waysOf(c.folder, both)
		if !slices.Equal(write, c.write) {
			t.Errorf("%s: a mount gives %v, want %v", c.folder, write, c.write)
		}
	}
}
