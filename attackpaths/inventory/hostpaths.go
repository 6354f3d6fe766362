package inventory

import (
	"iter"
	"path"
	"slices"
	"strings"
)

// Effect is what a way out of a pod gives.
type Effect uint8

// Effects, the strongest first.
const (
	// TakesNode is root on the node.
	TakesNode Effect = iota
	// TakesControlPlane is the credentials of the control plane that lie on its nodes; nothing on others.
	TakesControlPlane
	// TakesCredential is the credential of the node.
	TakesCredential
	// TakesPods is the tokens and secrets of the pods on the node, also those in the environment of processes.
	TakesPods
	// TakesMounted is the tokens and secrets in the volumes of the pods on the node.
	TakesMounted
	// LinksLogs is to put links where the kubelet reads logs: files of the host for who may read logs.
	LinksLogs
	// TakesNothing is data that gives nothing.
	TakesNothing
)

// mountAccess is how a mount lets files be used.
type mountAccess uint8

const (
	reads mountAccess = 1 << iota
	writes
)

// hostPath is a row of the table of folders and files of a node. Of the prefixes at or above a path, the longest ones
// count, for reads and for writes. A mount above a prefix gives what lies there too.
type hostPath struct {
	// prefixes may have * for one part of the path. Folders of Windows begin with the drive.
	prefixes string
	access   mountAccess
	effect   Effect
	// dependsOn is what else decides; empty for what is certain.
	dependsOn string
}

// What else decides about files of the host.
const (
	dependsOnBoot       = "when the node starts again"
	dependsOnDevices    = "which devices the runtime lets the container use"
	dependsOnDeviceUse  = "whether a pod uses a device of the plugin that is put there"
	dependsOnDriver     = "which volumes the kubelet mounts with the driver that is put there"
	dependsOnCgroups    = "whether the node uses cgroups of version 1"
	dependsOnKernel     = "what the node's kernel lets root in a container change there"
	dependsOnTrust      = "what the node's programs do with the names and certificates there"
	dependsOnKubeconfig = "whether a kubeconfig of an administrator lies there"
	dependsOnKeyThere   = "whether the kubelet's key lies there"
	dependsOnJoinToken  = "whether a token that lets nodes join lies there"
	dependsOnBus        = "what the node's service manager lets the container ask for"
	dependsOnPrograms   = "whether root on the node runs programs that lie there"
	dependsOnHomes      = "whether a user of the node may become root"
	dependsOnProcesses  = "whether the container may look into processes of other pods"
	dependsOnContents   = "what containers have in their files and environment"
	dependsOnLinks      = "whether the kubelet follows links there"
	dependsOnWindows    = "which files of the node the container's user may use"
	dependsOnPipe       = "what the service behind the pipe does for the container"
)

const both = reads | writes

// hostPaths is a table and never changes. Sources: hier(7), proc(5), cgroups(7), core(5), systemd.unit(5), crontab(5), cloud-init's,
// containerd's, CRI-O's, Docker's, Podman's and BuildKit's default paths, the paths of kubeadm, kubelet, k3s, RKE2, k0s, MicroK8s, kOps,
// and the Kubernetes documentation of device plugins, CSI drivers and Windows nodes.
var hostPaths = []hostPath{
	// What root on the node runs, reads as configuration, or trusts.
	{
		"/etc, /root, /usr, /bin, /sbin, /lib, /lib64, /opt/cni, /opt/bin, /run/systemd, /var/spool/cron, /var/spool/at",
		writes, TakesNode, "",
	},
	{"/etc/localtime, /etc/timezone, /etc/machine-id, /etc/hostname, /etc/os-release, /usr/share/zoneinfo", both, TakesNothing, ""},
	{
		"/etc/hosts, /etc/resolv.conf, /etc/ssl/certs, /etc/ca-certificates, /etc/pki, /usr/share/ca-certificates, " +
			"/run/systemd/resolve", writes, TakesNode, dependsOnTrust,
	},
	{"/root, /home", reads, TakesControlPlane, dependsOnKubeconfig},
	{"/home", writes, TakesNode, dependsOnHomes},
	{"/opt", writes, TakesNode, dependsOnPrograms},
	{"/boot, /var/lib/cloud", writes, TakesNode, dependsOnBoot},
	{"/run/systemd/private, /run/dbus", both, TakesNode, dependsOnBus},
	{"/var/lib/cloud", reads, TakesCredential, dependsOnJoinToken},
	// The kernel.
	{"/proc", reads, TakesPods, dependsOnProcesses}, // /proc/PID/root is what another container has mounted
	{"/proc", writes, TakesNothing, ""},
	{"/proc/sys, /sys, /dev/shm, /dev/log, /dev/null", both, TakesNothing, ""},
	{"/proc/sys/kernel", writes, TakesNode, ""},
	{"/proc/sys/fs/binfmt_misc", writes, TakesNode, dependsOnPrograms},
	{"/sys/kernel", writes, TakesNode, dependsOnKernel},
	{"/sys/fs/cgroup", writes, TakesNode, dependsOnCgroups},
	{"/dev", both, TakesNode, dependsOnDevices}, // a read-only mount does not keep devices from being written
	// The kubelet.
	{"/var/lib/kubelet", writes, TakesNode, ""},
	{"/var/lib/kubelet/pki", reads, TakesCredential, ""},
	{"/var/lib/kubelet/kubeconfig", reads, TakesCredential, dependsOnKeyThere},
	{"/var/lib/kubelet/bootstrap-kubeconfig", reads, TakesCredential, dependsOnJoinToken},
	{"/var/lib/kubelet/pods", reads, TakesMounted, ""},
	{"/var/lib/kubelet/device-plugins", writes, TakesNode, dependsOnDeviceUse},
	{"/var/lib/kubelet/plugins, /var/lib/kubelet/plugins_registry", writes, TakesNode, dependsOnDriver},
	{"/var/lib/kubelet/pod-resources", both, TakesNothing, ""},
	{"/var/log", writes, LinksLogs, dependsOnLinks},
	// The control plane.
	{"/etc/kubernetes, /etc/rancher, /srv/kubernetes", reads, TakesControlPlane, ""},
	{"/etc/kubernetes", reads, TakesCredential, dependsOnKeyThere},
	{"/etc/kubernetes/manifests", reads, TakesNothing, ""},
	{"/srv/kubernetes", writes, TakesNode, dependsOnPrograms},
	{"/var/lib/etcd", both, TakesControlPlane, ""},
	// Distributions.
	{"/var/lib/rancher, /var/lib/k0s, /var/snap/microk8s", writes, TakesNode, ""},
	{"/var/lib/rancher/*/server, /var/lib/k0s/pki, /var/snap/microk8s", reads, TakesControlPlane, ""},
	{"/var/lib/rancher/*/agent, /var/lib/k0s/kubelet/pki", reads, TakesCredential, ""},
	{"/var/lib/k0s/kubelet/pods", reads, TakesMounted, ""},
	{"/var/snap/microk8s", reads, TakesCredential, dependsOnKeyThere},
	// Container runtimes: their files, and the sockets that take commands of who can connect. A read-only mount does
	// not keep a process from connecting.
	{"/var/lib/containerd, /var/lib/containers, /var/lib/docker, /run/containerd, /run/k3s, /run/crio", writes, TakesNode, ""},
	{"/var/lib/containerd, /var/lib/containers, /var/lib/docker", reads, TakesPods, dependsOnContents},
	{
		"/run/containerd/containerd.sock, /run/k3s/containerd, /run/crio/crio.sock, /run/docker, /run/docker.sock, " +
			"/run/cri-dockerd.sock, /run/dockershim.sock, /run/podman, /run/buildkit", both, TakesNode, "",
	},
	// Windows.
	{
		"c:/windows, c:/program files, c:/programdata, c:/users, c:/opt/cni, c:/k, c:/etc, c:/var/lib/kubelet",
		writes, TakesNode, dependsOnWindows,
	},
	{"c:/k, c:/etc/kubernetes, c:/var/lib/kubelet/pki", reads, TakesCredential, dependsOnWindows},
	{"c:/var/lib/kubelet/pods", reads, TakesMounted, dependsOnWindows},
	{"//./pipe", both, TakesNode, dependsOnPipe},
	{"//./pipe/containerd-containerd, //./pipe/docker_engine, //./pipe/cri-dockerd", both, TakesNode, ""},
}

// rowsFor visits the rows of the table for an access, prefix by prefix.
func rowsFor(access mountAccess) iter.Seq2[string, *hostPath] {
	return func(yield func(string, *hostPath) bool) {
		for i := range hostPaths {
			for prefix := range strings.SplitSeq(hostPaths[i].prefixes, ", ") {
				if hostPaths[i].access&access != 0 && !yield(prefix, &hostPaths[i]) {
					return
				}
			}
		}
	}
}

// waysOf lists what a mount of a folder gives, the strongest first. Known is false if no row says what lies there: files of
// people and logs may hold anything.
func waysOf(folder string, access mountAccess) (ways []Escape, known bool) {
	folder = hostFolder(folder)
	for _, wanted := range [...]mountAccess{access & reads, access & writes} {
		longest := -1
		for prefix := range rowsFor(wanted) {
			if beneath(folder, prefix) {
				longest = max(longest, strings.Count(prefix, "/"))
			}
		}
		for prefix, row := range rowsFor(wanted) {
			at := beneath(folder, prefix) && strings.Count(prefix, "/") == longest
			if !at && !beneath(prefix, folder) {
				continue
			}
			known = known || row.effect != LinksLogs && row.dependsOn != dependsOnKubeconfig
			if row.effect != TakesNothing {
				ways = append(ways, Escape{DependsOn: row.dependsOn, Effect: row.effect})
			}
		}
	}
	// What others give as surely is left out.
	slices.SortStableFunc(ways, Escape.compare)
	given := map[Effect]bool{}
	ways = slices.DeleteFunc(ways, func(w Escape) bool {
		known := given[w.Effect]
		given[w.Effect] = true
		return known
	})
	return ways, known
}

// hostFolder is a path of a node in one form. /var/run is a link to /run.
func hostFolder(folder string) string {
	slashes := strings.ReplaceAll(folder, `\`, "/")
	if pipe, ok := strings.CutPrefix(slashes, "//./"); ok {
		return "//./" + strings.ToLower(path.Clean(pipe))
	}
	if isWindows(folder) {
		drive, rest := strings.ToLower(slashes[:2]), strings.ToLower(path.Clean("/"+slashes[2:]))
		return strings.TrimSuffix(drive+rest, "/")
	}
	clean := path.Clean("/" + folder)
	if rest, ok := strings.CutPrefix(clean, "/var/run"); ok && (rest == "" || rest[0] == '/') {
		return "/run" + rest
	}
	return clean
}

// isWindows reports whether a path begins with a drive, or is a pipe.
func isWindows(folder string) bool {
	return len(folder) > 1 && folder[1] == ':' || strings.HasPrefix(folder, `\\`)
}

// beneath reports whether a path is a folder or lies below it. A part of either may be *.
func beneath(p, folder string) bool {
	if folder == "/" {
		return strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "//")
	}
	parts, above := strings.Split(p, "/"), strings.Split(folder, "/")
	if len(parts) < len(above) {
		return false
	}
	for i, part := range above {
		if part != parts[i] && part != "*" && parts[i] != "*" {
			return false
		}
	}
	return true
}
