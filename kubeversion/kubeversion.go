// Package kubeversion describes how node authorization behaves in each Kubernetes
// minor version, by the feature gates that affect it and their defaults.
//
// [Parse] reads a version and [For] returns its [Features]. [Features.WithOverrides]
// applies the flag --feature-gates of an API server, and refuses a gate that the minor
// does not have or does not let be set ([Features.Settable]).
//
// Sources: pkg/features/kube_features.go of each minor, and
// https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/
package kubeversion

import (
	"fmt"
	"strconv"
	"strings"
)

// Minor is a minor version of Kubernetes 1: 37 stands for 1.37.
type Minor int

// The supported range.
const (
	Oldest Minor = 30
	Latest Minor = 37
)

// Minors returns the supported minors, oldest first.
func Minors() []Minor {
	var minors []Minor
	for m := Oldest; m <= Latest; m++ {
		minors = append(minors, m)
	}
	return minors
}

// String returns "1.37".
func (m Minor) String() string { return "1." + strconv.Itoa(int(m)) }

// Supported reports whether m is in the supported range.
func (m Minor) Supported() bool { return m >= Oldest && m <= Latest }

// Parse parses a version in the forms that servers and people use: "1.37", "v1.37.1",
// "1.33+", "v1.34.4-eks-113cf36". Versions outside the supported range are an error.
func Parse(s string) (Minor, error) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(s, "v"), "1.")
	if !ok {
		return 0, fmt.Errorf("kubernetes version %q is not of the form 1.MINOR, for example %s", s, Latest)
	}
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	n, err := strconv.Atoi(rest[:digits])
	if err != nil || digits < len(rest) && !strings.ContainsAny(rest[digits:digits+1], ".+-") {
		return 0, fmt.Errorf("kubernetes version %q is not of the form 1.MINOR, for example %s", s, Latest)
	}
	if m := Minor(n); m.Supported() {
		return m, nil
	}
	return 0, fmt.Errorf("kubernetes version %q is not supported: want %s to %s", s, Oldest, Latest)
}
