package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// ReadOptions are the options of Read.
type ReadOptions struct {
	// Stdin is read for the path "-".
	Stdin io.Reader
	// Progress, if set, is called from time to time.
	Progress func(manifest.Progress)
	// State, if set, also gets the objects that a cluster's state has.
	State *source.Reader
}

// Read builds a cluster from files: manifests, lists, snapshots, kubeconfigs, and the configurations
// of authenticators, authorizers and API servers. It skips objects that no check needs without
// parsing them, so that a dump of a whole cluster costs little more than reading it.
func Read(ctx context.Context, paths []string, o ReadOptions) (*Cluster, error) {
	r := newReader(&Cluster{RBAC: rbac.NewPolicy(rbac.ComputeAggregation())})
	if err := r.read(ctx, paths, o); err != nil {
		return nil, err
	}
	r.cluster.RBACKnown = r.snapshotHasRBAC || len(r.defaults) == len(defaultRBAC())
	return r.cluster, nil
}

// Add adds files to a cluster: information that the API server does not serve, such as the
// configuration of its authorizers.
func (c *Cluster) Add(ctx context.Context, paths []string, o ReadOptions) error {
	return newReader(c).read(ctx, paths, o)
}

func (r *reader) read(ctx context.Context, paths []string, o ReadOptions) error {
	r.state = o.State
	before := *r.cluster
	units, paths, err := r.readUnits(paths)
	if err != nil {
		return err
	}
	names := units
	if len(paths) > 0 || len(units) == 0 {
		read, err := manifest.Read(ctx, paths, manifest.Options{Stdin: o.Stdin, Progress: o.Progress, Wanted: r.wanted}, r.document)
		if err != nil {
			return err
		}
		names = append(names, read...)
	}
	r.addTalosServers()
	origin := render.Files(names)
	if reflect.DeepEqual(before, *r.cluster) && (r.state == nil || r.state.Taken() == 0) { // no findings would be misleading
		return fmt.Errorf("nothing to examine in %s: want aws-auth or other mappings, nodes, certificate requests, "+
			"pods, cluster role bindings, a snapshot, the manifest or AuthorizationConfiguration of a kube-apiserver, "+
			"or the configuration of one by OpenShift, k3s, RKE2, Talos or a unit of systemd", origin)
	}
	r.cluster.Origin = strings.TrimPrefix(r.cluster.Origin+" and "+origin, " and ")
	r.cluster.sort()
	return nil
}

// reader fills a cluster from documents.
type reader struct {
	cluster *Cluster
	kinds   map[groupKind]documentKind
	// state gets the objects of a cluster's state; nil if none is made.
	state *source.Reader
	// defaults are the objects of [defaultRBAC] that were read.
	defaults        map[string]bool
	snapshotHasRBAC bool
	// talos has what machine configs of Talos say about kube-apiserver, by file.
	talos map[string]*talosFile
}

func newReader(c *Cluster) *reader {
	return &reader{cluster: c, kinds: documentKinds(), defaults: map[string]bool{}, talos: map[string]*talosFile{}}
}

// API groups and versions of the objects that are read.
const (
	groupMappings     = "iamauthenticator.k8s.aws"
	groupServerConfig = "apiserver.config.k8s.io"
	groupSnapshot     = "snapshot.node-authorizer.io"
	groupApps         = "apps"
)

type groupKind struct{ group, kind string }

// documentKind is a kind of document that is read.
type documentKind struct {
	// mentions, if any, are words of which an object must contain one: most pods and config maps
	// are not needed.
	mentions []string
	take     func(*reader, *manifest.Document) error
}

// documentKinds returns the table of the kinds of documents that are read.
func documentKinds() map[groupKind]documentKind {
	const accessEntry = "AccessEntry"
	programs := []string{apiServerProgram, IAMAuthenticator, K3s.program(), RKE2.program()}
	plain := append(
		[]string{"mapRoles", "mapUsers", "mapAccounts", "clusterID", "machine", "accessEntr", templateEntry}, rancherServerOptions()...,
	)
	return map[groupKind]documentKind{
		{"", "ConfigMap"}:                     {[]string{"aws-auth", "clusterID", openShiftKind}, (*reader).configMap},
		{"", "Node"}:                          {nil, object[corev1.Node]},
		{"", "Pod"}:                           {programs, object[corev1.Pod]},
		{"", "Config"}:                        {[]string{"exec"}, (*reader).kubeconfig},
		{groupApps, "DaemonSet"}:              {programs, object[workload]},
		{groupApps, "Deployment"}:             {programs, object[workload]},
		{groupApps, "StatefulSet"}:            {programs, object[workload]},
		{groupMappings, "IAMIdentityMapping"}: {nil, object[IdentityMapping]},
		{certificatesv1.GroupName, "CertificateSigningRequest"}: {nil, object[certificatesv1.CertificateSigningRequest]},
		{rbacv1.GroupName, "ClusterRole"}:                       {nil, object[rbacv1.ClusterRole]},
		{rbacv1.GroupName, "ClusterRoleBinding"}:                {nil, object[rbacv1.ClusterRoleBinding]},
		{rbacv1.GroupName, "Role"}:                              {nil, object[rbacv1.Role]},
		{rbacv1.GroupName, "RoleBinding"}:                       {nil, object[rbacv1.RoleBinding]},
		{groupServerConfig, "AuthorizationConfiguration"}:       {nil, (*reader).authorization},
		{configv1alpha1.GroupName, configv1alpha1.Kind}:         {[]string{"iam"}, (*reader).ourConfig},
		{groupSnapshot, "Snapshot"}:                             {nil, (*reader).snapshot},
		{"eksctl.io", "ClusterConfig"}:                          {nil, (*reader).eksctl},
		{groupOpenShift, openShiftKind}:                         {nil, (*reader).openShiftConfig},
		{admissionv1.GroupName, "MutatingWebhookConfiguration"}: {[]string{restrictionWebhook}, object[webhooks]},
		{"eks.services.k8s.aws", accessEntry}:                   {nil, (*reader).accessEntryResource}, // of AWS Controllers for Kubernetes
		{"eks.aws.upbound.io", accessEntry}:                     {nil, (*reader).accessEntryResource}, // of Crossplane
		{"eks.aws.m.upbound.io", accessEntry}:                   {nil, (*reader).accessEntryResource},
		{"", "KubeAPIServerConfig"}:                             {nil, (*reader).talosDocument},
		{"", talosAuthorizer}:                                   {nil, (*reader).talosDocument},
		{"", talosHostname}:                                     {nil, (*reader).talosDocument},
		{"", ""}:                                                {plain, (*reader).plainFile},
	}
}

func (r *reader) findKind(apiVersion, kind string) (documentKind, bool) {
	group := manifest.Type{APIVersion: apiVersion}.Group()
	if group == configv1alpha1.GroupName && kind != configv1alpha1.DoctorBaselineKind {
		kind = configv1alpha1.Kind // the parser reports another kind as an error
	}
	k, known := r.kinds[groupKind{group, kind}]
	return k, known
}

func (r *reader) wanted(apiVersion, kind string, text []byte) bool {
	return r.examined(apiVersion, kind, text) || r.state != nil && r.state.Wants(apiVersion, kind)
}

// examined reports whether a check reads a document.
func (r *reader) examined(apiVersion, kind string, text []byte) bool {
	k, known := r.findKind(apiVersion, kind)
	return known && (len(k.mentions) == 0 ||
		slices.ContainsFunc(k.mentions, func(word string) bool { return bytes.Contains(text, []byte(word)) }))
}

func (r *reader) document(d *manifest.Document) error {
	if r.state != nil && r.state.Wants(d.APIVersion, d.Kind) {
		r.state.Take(d)
		if !r.examined(d.APIVersion, d.Kind, d.JSON()) {
			return nil
		}
	}
	if k, known := r.findKind(d.APIVersion, d.Kind); known {
		return k.take(r, d)
	}
	return nil
}

// place returns the place of a value of a document.
func place(d *manifest.Document, path ...string) finding.Place {
	return finding.Place{File: d.File(), Line: d.Line(path...), Object: d.Describe(), Key: keyOf(path)}
}

// keyOf returns a path as text: "spec.containers[0].command".
func keyOf(path []string) string {
	var b strings.Builder
	for _, step := range path {
		switch {
		case step != "" && strings.Trim(step, "0123456789") == "":
			b.WriteString("[" + step + "]")
		case b.Len() > 0:
			b.WriteString("." + step)
		default:
			b.WriteString(step)
		}
	}
	return b.String()
}

// object reads an API object.
func object[T any, O interface {
	*T
	metav1.Object
}](r *reader, d *manifest.Document) error {
	o := O(new(T))
	if err := d.Decode(o); err != nil {
		return err
	}
	if o.GetName() == "" && o.GetGenerateName() == "" {
		return d.Fail(errors.New("metadata.name is empty"))
	}
	if slices.Contains(defaultRBAC(), d.Describe()) {
		r.defaults[d.Describe()] = true
	}
	r.cluster.add(o, func(path ...string) finding.Place { return place(d, path...) })
	return nil
}

// defaultRBAC returns one object of each kind of RBAC that kube-apiserver creates in every cluster. With
// all of them, the input has all roles and bindings: files have either all objects of a kind, or only those that users
// wrote.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings
func defaultRBAC() []string {
	const role = "extension-apiserver-authentication-reader"
	return []string{
		"ClusterRole cluster-admin", "ClusterRoleBinding cluster-admin",
		"Role kube-system/" + role, "RoleBinding kube-system/system::" + role,
	}
}

func (r *reader) authorization(d *manifest.Document) error {
	r.cluster.Authorizations = append(r.cluster.Authorizations, Authorization{Place: place(d), Text: bytes.Clone(d.JSON())})
	return nil
}
