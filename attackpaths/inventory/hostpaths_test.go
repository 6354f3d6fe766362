package inventory

import (
	"slices"
	"testing"
)

// givesAtLeast reports whether a set of grants has at least another: the node gives everything that lies on it.
func givesAtLeast(all []grant, want grant) bool {
	return slices.ContainsFunc(all, func(g grant) bool {
		return (g.effect == want.effect || g.effect == TakesNode) && (g.dependsOn == "" || want.dependsOn != "")
	})
}

// For each row, and the folders above and below it: a mount that may write gives at least what one that may only read
// gives, and a mount above a folder at least what a mount of the folder gives.
func TestWriteIncludesReadForEachRow(t *testing.T) {
	for _, row := range hostPaths {
		for _, folder := range []string{row.prefix, row.prefix + "/below", row.prefix + "/below/it"} {
			folder := hostFolder(folder)
			read, _ := grantsOf(folder, reads)
			write, known := grantsOf(folder, both)
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
			whole, _ := grantsOf(row.prefix, access)
			for above := parent(row.prefix); above != ""; above = parent(above) {
				all, _ := grantsOf(above, access)
				for _, g := range whole {
					if !givesAtLeast(all, g) {
						t.Errorf("%s gives %v, and %s above it %v", row.prefix, whole, above, all)
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
	node, possible := grant{TakesNode, ""}, func(e Effect, dependsOn string) grant { return grant{e, dependsOn} }
	for _, c := range []struct {
		folder      string
		read, write []grant
		unknown     bool
	}{
		{
			folder: "/", write: []grant{
				node, {TakesControlPlane, ""}, {TakesCredential, ""}, {TakesPods, ""}, possible(LinksLogs, dependsOnLinks),
			},
			read: []grant{node, {TakesControlPlane, ""}, {TakesCredential, ""}, {TakesPods, ""}}, // sockets
		},
		{
			folder: "/etc", write: []grant{node, {TakesControlPlane, ""}, possible(TakesCredential, dependsOnKeyThere)},
			read: []grant{{TakesControlPlane, ""}, possible(TakesCredential, dependsOnKeyThere)},
		},
		{
			folder: "/etc/kubernetes/pki", write: []grant{node, {TakesControlPlane, ""}, possible(TakesCredential, dependsOnKeyThere)},
			read: []grant{{TakesControlPlane, ""}, possible(TakesCredential, dependsOnKeyThere)},
		},
		{folder: "/etc/cron.d", write: []grant{node}, unknown: true},
		{folder: "/etc/localtime"},
		{folder: "/usr/share/zoneinfo/Europe"},
		{folder: "/usr/local/bin", write: []grant{node}, unknown: true},
		{folder: "/opt/cni/bin", write: []grant{node}, unknown: true},
		{folder: "/opt/app", write: []grant{possible(TakesNode, dependsOnPrograms)}, unknown: true},
		{
			folder: "/root", write: []grant{node, possible(TakesControlPlane, dependsOnKubeconfig)},
			read: []grant{possible(TakesControlPlane, dependsOnKubeconfig)}, unknown: true,
		},
		{
			folder: "/var/lib/kubelet", write: []grant{node, {TakesCredential, ""}, {TakesPods, ""}},
			read: []grant{{TakesCredential, ""}, {TakesPods, ""}},
		},
		{
			folder: "/var/lib/kubelet/pki/kubelet-client-current.pem", write: []grant{node, {TakesCredential, ""}},
			read: []grant{{TakesCredential, ""}},
		},
		{folder: "/var/lib/kubelet/pods", write: []grant{node, {TakesPods, ""}}, read: []grant{{TakesPods, ""}}},
		{folder: "/var/lib/kubelet/device-plugins", write: []grant{possible(TakesNode, dependsOnDeviceUse)}, unknown: true},
		{folder: "/var/lib/rancher/k3s/server/tls", write: []grant{node, {TakesControlPlane, ""}}, read: []grant{{TakesControlPlane, ""}}},
		{
			folder: "/var/lib/rancher/rke2", write: []grant{node, {TakesControlPlane, ""}, {TakesCredential, ""}},
			read: []grant{{TakesControlPlane, ""}, {TakesCredential, ""}},
		},
		{folder: "/var/run/docker.sock", write: []grant{node}, read: []grant{node}},
		{folder: "/run/k3s/containerd/containerd.sock", write: []grant{node}, read: []grant{node}},
		{folder: "/run/containerd", write: []grant{node}, read: []grant{node}},
		{folder: "/run/podman/podman.sock", write: []grant{node}, read: []grant{node}},
		{folder: "/run/buildkit/buildkitd.sock", write: []grant{node}, read: []grant{node}},
		{folder: "/run/cri-dockerd.sock", write: []grant{node}, read: []grant{node}},
		{
			folder: "/run/dbus/system_bus_socket", write: []grant{possible(TakesNode, dependsOnBus)},
			read: []grant{possible(TakesNode, dependsOnBus)},
		},
		{
			folder: "/run/systemd/private", write: []grant{possible(TakesNode, dependsOnBus)},
			read: []grant{possible(TakesNode, dependsOnBus)},
		},
		{folder: "/proc/sys/kernel/core_pattern", write: []grant{node}},
		{
			folder: "/proc", write: []grant{node, possible(TakesPods, dependsOnProcesses)},
			read: []grant{possible(TakesPods, dependsOnProcesses)},
		},
		{folder: "/proc/sys/net"},
		{folder: "/proc/sys/fs", write: []grant{possible(TakesNode, dependsOnPrograms)}},
		{folder: "/sys/fs/cgroup", write: []grant{possible(TakesNode, dependsOnCgroups)}},
		{folder: "/dev", write: []grant{possible(TakesNode, dependsOnDevices)}, read: []grant{possible(TakesNode, dependsOnDevices)}},
		{folder: "/var/log/app", write: []grant{possible(LinksLogs, dependsOnLinks)}, unknown: true},
		{folder: "/var/logs", unknown: true},
		{folder: "/etcetera", unknown: true},
		{folder: "/mnt/data", unknown: true},
		{folder: `C:\`, write: []grant{
			possible(TakesNode, dependsOnWindows), possible(TakesCredential, dependsOnWindows), possible(TakesPods, dependsOnWindows),
		}, read: []grant{possible(TakesCredential, dependsOnWindows), possible(TakesPods, dependsOnWindows)}},
		{folder: `c:\var\lib\kubelet\pki`, write: []grant{
			possible(TakesNode, dependsOnWindows), possible(TakesCredential, dependsOnWindows),
		}, read: []grant{possible(TakesCredential, dependsOnWindows)}},
		{folder: `\\.\pipe\containerd-containerd`, write: []grant{node}, read: []grant{node}},
		{folder: `D:\data`, unknown: true},
	} {
		read, known := grantsOf(c.folder, reads)
		if !slices.Equal(read, c.read) || known == c.unknown {
			t.Errorf("%s: a read-only mount gives %v, want %v; known: %v", c.folder, read, c.read, known)
		}
		write, _ := grantsOf(c.folder, both)
		if !slices.Equal(write, c.write) {
			t.Errorf("%s: a mount gives %v, want %v", c.folder, write, c.write)
		}
	}
}
