// Package build makes the programs of a control plane from the Go modules that
// the module in ../../binaries pins, and keeps them in the user's cache
// directory, by version.
package build

import (
	"fmt"
	"strings"
)

// Program is one executable of the control plane.
type Program struct {
	// Name of the executable.
	Name string
	// Module pins its version.
	Module string
	// Package is its main package.
	Package string
}

const (
	kubernetes = "k8s.io/kubernetes"
	// machineKubelet is a folder of the module with the pins, and the package in
	// it.
	machineKubelet = "machine-kubelet"
)

// Programs are all of them, in the order in which they are built. kubemark
// holds the kubelet with a pretended machine below it; machine-kubelet is the
// same with the kubelet's handling of its certificates.
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

// linkerFlags strip the programs, and tell those of Kubernetes their version,
// which they would take to be v0.0.0-master otherwise.
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
			// The commit is not known; unset, the placeholder of the release
			// archive would show.
			"-X", pkg+".gitCommit=",
			"-X", pkg+".gitTreeState=clean",
		)
	}
	return strings.Join(flags, " "), nil
}
