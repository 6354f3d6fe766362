// Package build builds the programs of a control plane from the Go modules that are
// pinned in ../../binaries, and caches them in the user's cache directory, by version.
package build

import (
	"fmt"
	"strings"
)

// Program is one executable of the control plane.
type Program struct {
	// Name is the name of the executable.
	Name string
	// Module pins its version.
	Module string
	// Package is its main package.
	Package string
}

const (
	kubernetes = "k8s.io/kubernetes"
	// machineKubelet is a folder and package of the module with the pins.
	machineKubelet = "machine-kubelet"
)

// Programs returns all programs, in the order in which they are built. kubemark has a
// kubelet with a fake container runtime. machine-kubelet is the same with the kubelet's
// certificate management.
func Programs() []Program {
	return []Program{
		{Name: "etcd", Module: "go.etcd.io/etcd/server/v3", Package: "go.etcd.io/etcd/server/v3"},
		{Name: "kube-apiserver", Module: kubernetes, Package: kubernetes + "/cmd/kube-apiserver"},
		{Name: "kube-controller-manager", Module: kubernetes, Package: kubernetes + "/cmd/kube-controller-manager"},
		{Name: "kube-scheduler", Module: kubernetes, Package: kubernetes + "/cmd/kube-scheduler"},
		{Name: "kubemark", Module: kubernetes, Package: kubernetes + "/cmd/kubemark"},
		{Name: machineKubelet, Module: kubernetes, Package: "./" + machineKubelet},
	}
}

// linkerFlags strips the programs, and sets the version of those of Kubernetes. The
// default is v0.0.0-master.
func linkerFlags(kubernetesVersion string) (string, error) {
	major, rest, ok := strings.Cut(strings.TrimPrefix(kubernetesVersion, "v"), ".")
	minor, _, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 {
		return "", fmt.Errorf("the version %q of %s is not of the form v1.2.3", kubernetesVersion, kubernetes)
	}
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X", pkg+".gitVersion="+kubernetesVersion,
			"-X", pkg+".gitMajor="+major,
			"-X", pkg+".gitMinor="+minor,
			// The commit is unknown. Without a value, the placeholder of the release
			// archive would appear.
			"-X", pkg+".gitCommit=",
			"-X", pkg+".gitTreeState=clean",
		)
	}
	return strings.Join(flags, " "), nil
}
