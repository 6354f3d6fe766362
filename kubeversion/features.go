package kubeversion

import (
	"fmt"
	"strconv"
	"strings"
)

// Gate is the name of a feature gate of kube-apiserver.
type Gate string

// The gates that change what a node may do, and [ConstrainedImpersonation], which changes who
// may act as a node or as another identity.
const (
	// AuthorizeNodeWithSelectors limits a node to reading its own Node object
	// and its own pods (KEP-4601).
	AuthorizeNodeWithSelectors Gate = "AuthorizeNodeWithSelectors"
	// AuthorizeWithSelectors shows field and label selectors to authorizers
	// (KEP-4601).
	AuthorizeWithSelectors Gate = "AuthorizeWithSelectors"
	// ServiceAccountNodeAudienceRestriction limits the audiences of the tokens
	// that a node may ask for (KEP-4412).
	ServiceAccountNodeAudienceRestriction Gate = "ServiceAccountNodeAudienceRestriction"
	// KubeletServiceAccountTokenForCredentialProviders lets a node read the
	// service accounts of its pods (KEP-4412).
	KubeletServiceAccountTokenForCredentialProviders Gate = "KubeletServiceAccountTokenForCredentialProviders"
	// ConstrainedImpersonation lets an identity be impersonated for some requests only (KEP-5284).
	ConstrainedImpersonation Gate = "ConstrainedImpersonation"
	// DynamicResourceAllocation serves resource claims and slices (KEP-4381).
	DynamicResourceAllocation Gate = "DynamicResourceAllocation"
	// PodCertificateRequest lets a node request certificates for its pods
	// (KEP-4317).
	PodCertificateRequest Gate = "PodCertificateRequest"
	// ClusterTrustBundle lets nodes read cluster trust bundles (KEP-3257).
	ClusterTrustBundle Gate = "ClusterTrustBundle"
	// AllowInsecureKubeletCertificateSigningRequests, when on, admits kubelet
	// certificate requests for other nodes' names.
	AllowInsecureKubeletCertificateSigningRequests Gate = "AllowInsecureKubeletCertificateSigningRequests"
	// RecoverVolumeExpansionFailure lets a node write the allocated resources
	// in a claim's status (KEP-1790).
	RecoverVolumeExpansionFailure Gate = "RecoverVolumeExpansionFailure"
	// CSIVolumeHealth lets a node write the status of its CSINode (KEP-1432).
	CSIVolumeHealth Gate = "CSIVolumeHealth"
)

// setting is a gate's state in a minor.
type setting uint8

const (
	absentOff setting = iota // the gate does not exist yet; its effect is off
	absentOn                 // the gate was removed; its effect is on
	off
	on
	locked // on, and cannot be set
)

// gateTable has each gate's settings from 1.30 on, in the order of the bits in
// Features.
var gateTable = [...]struct {
	gate   Gate
	minors [Latest - Oldest + 1]setting
}{
	//                                                   1.30       1.31       1.32       1.33       1.34       1.35       1.36       1.37
	{AllowInsecureKubeletCertificateSigningRequests, [...]setting{absentOn, off, off, off, off, off, off, off}},
	{AuthorizeNodeWithSelectors, [...]setting{absentOff, off, on, on, locked, locked, locked, absentOn}},
	{AuthorizeWithSelectors, [...]setting{absentOff, off, on, on, locked, locked, locked, absentOn}},
	{CSIVolumeHealth, [...]setting{off, off, off, off, off, off, off, off}},
	{ClusterTrustBundle, [...]setting{off, off, off, off, off, off, off, on}},
	{ConstrainedImpersonation, [...]setting{absentOff, absentOff, absentOff, absentOff, absentOff, off, on, on}},
	{DynamicResourceAllocation, [...]setting{off, off, off, off, on, locked, locked, locked}},
	{KubeletServiceAccountTokenForCredentialProviders, [...]setting{absentOff, absentOff, absentOff, off, on, on, on, on}},
	{PodCertificateRequest, [...]setting{absentOff, absentOff, absentOff, absentOff, off, off, off, on}},
	{RecoverVolumeExpansionFailure, [...]setting{off, off, on, on, locked, locked, locked, locked}},
	// 1.32.0 and 1.32.1 had it on; the patches since have it off.
	{ServiceAccountNodeAudienceRestriction, [...]setting{absentOff, absentOff, off, on, on, on, on, on}},
}

// Gates returns the gates that affect node authorization, sorted by name.
func Gates() []Gate {
	gates := make([]Gate, len(gateTable))
	for i, row := range gateTable {
		gates[i] = row.gate
	}
	return gates
}

// Features is the behaviour of one minor, with or without overrides. It is
// comparable. The zero value is not a version; start with For.
type Features struct {
	minor Minor
	on    uint16
}

// For returns the defaults of a supported minor.
func For(m Minor) Features {
	f := Features{minor: m}
	for i := range gateTable {
		switch f.setting(i) {
		case on, locked, absentOn:
			f.on |= 1 << i
		}
	}
	return f
}

func (f Features) setting(i int) setting { return gateTable[i].minors[f.minor-Oldest] }

// Minor returns the minor version that f started from.
func (f Features) Minor() Minor { return f.minor }

// Enabled reports whether what the gate guards is in effect. Gates that do not affect
// node authorization are off.
func (f Features) Enabled(g Gate) bool {
	i, ok := index(g)
	return ok && f.on&(1<<i) != 0
}

// With returns f with one gate set. An unknown gate is an error, and so is a value
// that the minor does not allow, because the gate is locked or does not exist in it.
func (f Features) With(g Gate, enabled bool) (Features, error) {
	i, ok := index(g)
	if !ok {
		return f, fmt.Errorf("feature gate %q is not one that node authorization depends on: those are %s", g, gateList())
	}
	switch s := f.setting(i); {
	case s == locked && !enabled:
		return f, fmt.Errorf("feature gate %s is locked to true in Kubernetes %s", g, f.minor)
	case (s == absentOff || s == absentOn) && enabled != (s == absentOn):
		return f, fmt.Errorf("feature gate %s does not exist in Kubernetes %s", g, f.minor)
	}
	f.on &^= 1 << i
	if enabled {
		f.on |= 1 << i
	}
	return f, nil
}

// WithOverrides returns f with gates set as in kube-apiserver's --feature-gates
// flag: "K=true,L=false".
func (f Features) WithOverrides(list string) (Features, error) {
	for _, item := range strings.Split(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, value, _ := strings.Cut(item, "=")
		enabled, err := strconv.ParseBool(strings.TrimSpace(value))
		if err != nil {
			return f, fmt.Errorf("feature gate %q is not of the form NAME=true or NAME=false", item)
		}
		if f, err = f.With(Gate(strings.TrimSpace(name)), enabled); err != nil {
			return f, err
		}
	}
	return f, nil
}

// Settable reports whether the minor has the gate and lets it be set both ways.
func (f Features) Settable(g Gate) bool {
	i, ok := index(g)
	return ok && (f.setting(i) == on || f.setting(i) == off)
}

func index(g Gate) (int, bool) {
	for i, row := range gateTable {
		if row.gate == g {
			return i, true
		}
	}
	return 0, false
}

func gateList() string {
	names := make([]string, len(gateTable))
	for i, row := range gateTable {
		names[i] = string(row.gate)
	}
	return strings.Join(names, ", ")
}
