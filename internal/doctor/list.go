package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/client-go/tools/pager"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/rbac"
)

const (
	// pageSize is the number of objects in a page of a list.
	pageSize = 500
	// listAttempts is how often a list is started when a page expires, which happens after some minutes.
	listAttempts = 3
)

// List reads what the checks need from a cluster, once and page by page. Resources that may not be
// read are in [Cluster.Missing]. It returns an error if nothing may be read, and for all other
// failures.
func List(ctx context.Context, config *rest.Config, progress func(manifest.Progress)) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if config.QPS == 0 {
		config.QPS = -1 // pages are requested sequentially; the server has its own limits
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", config.Host, err)
	}
	resources, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", config.Host, err)
	}
	l := &lister{
		client: client, resources: resources, host: config.Host, progress: progress,
		cluster: &Cluster{Origin: "cluster " + config.Host, Live: true, RBAC: rbac.NewPolicy(), RBACKnown: true},
	}
	l.ownCredential(config)
	return l.cluster, l.list(ctx)
}

// lister fills a cluster from an API server.
type lister struct {
	client    kubernetes.Interface
	resources dynamic.Interface
	host      string
	progress  func(manifest.Progress)
	cluster   *Cluster
	objects   int
}

// listing is a resource, named as in kubectl, with the function that reads it.
type listing struct {
	resource string
	read     func(context.Context) error
}

const (
	resourceMappings = "iamidentitymappings." + groupMappings
	openShiftPods    = "pods in " + openShiftNamespace
)

func (l *lister) listings() []listing {
	core, policy, requests := l.client.CoreV1(), l.client.RbacV1(), l.client.CertificatesV1().CertificateSigningRequests()
	var signers, programs []metav1.ListOptions
	for _, signer := range kubeletSigners() {
		signers = append(signers, metav1.ListOptions{FieldSelector: "spec.signerName=" + signer})
	}
	for _, label := range []string{"component=" + apiServerProgram, "k8s-app=" + apiServerProgram, "k8s-app=" + IAMAuthenticator} {
		programs = append(programs, metav1.ListOptions{LabelSelector: label})
	}
	roles := rbacResources()
	return []listing{
		{"configmaps", l.awsAuth},
		{resourceMappings, l.identityMappings},
		{"nodes", l.each("Node", page(core.Nodes().List))},
		{resourceRequests, l.each("CertificateSigningRequest", page(requests.List), signers...)},
		{roles[0], l.each("ClusterRole", page(policy.ClusterRoles().List))},
		{roles[1], l.each("ClusterRoleBinding", page(policy.ClusterRoleBindings().List))},
		{roles[2], l.each("Role", page(policy.Roles("").List))},
		{roles[3], l.each("RoleBinding", page(policy.RoleBindings("").List))},
		{"pods", l.each("Pod", page(core.Pods(kubeSystem).List), programs...)}, // programs of a cloud's control plane are not pods
		{openShiftPods, l.openShift},
		{resourceWebhooks, l.webhooks},
	}
}

// errNotNeeded is returned for a resource that is not needed. A check that needs it detects that it
// is missing.
var errNotNeeded = errors.New("not read")

func (l *lister) list(ctx context.Context) error {
	version, err := l.client.Discovery().ServerVersion()
	if err != nil {
		return source.ExplainFailure(ctx, l.host, "ask for the version of", err)
	}
	if minor, err := kubeversion.Parse(source.BehavesAs(version)); err == nil {
		l.cluster.Version = minor
	}
	readable := false
	for _, what := range l.listings() {
		err := what.read(ctx)
		switch {
		case errors.Is(err, errNotNeeded):
		case apierrors.IsForbidden(err):
			reason := "not allowed to read them"
			if message := err.Error(); message != "" && message != "unknown" { // some responses have no message
				reason += ": " + message
			}
			l.cluster.Missing = append(l.cluster.Missing, Missing{
				what.resource, reason, fmt.Sprintf("bind a role with the verbs get and list on %s to the user", what.resource),
			})
			l.cluster.RBACKnown = l.cluster.RBACKnown && !slices.Contains(rbacResources(), what.resource)
		case err != nil:
			return source.ExplainFailure(ctx, l.host, "read "+what.resource+" of", err)
		default:
			readable = true
		}
	}
	if !readable {
		return fmt.Errorf("nothing of cluster %s may be read with these credentials: %s", l.host, l.cluster.Missing[0])
	}
	l.cluster.sort()
	return nil
}

func (l *lister) ownCredential(config *rest.Config) {
	var exec clientcmdv1.ExecConfig
	if config.ExecProvider == nil || clientcmdv1.Convert_api_ExecConfig_To_v1_ExecConfig(config.ExecProvider, &exec, nil) != nil {
		return
	}
	if c, ok := credentialOf(&exec, "", finding.Place{Object: "kubeconfig", Key: "user.exec"}); ok {
		c.Own = true
		l.cluster.Credentials = append(l.cluster.Credentials, c)
	}
}

func page[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error)) pager.ListPageFunc {
	return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, o) }
}

// each returns a function that adds all objects of a kind, or those that one of the options selects. Pages
// are not kept.
func (l *lister) each(kind string, list pager.ListPageFunc, selected ...metav1.ListOptions) func(context.Context) error {
	if len(selected) == 0 {
		selected = []metav1.ListOptions{{}}
	}
	return func(ctx context.Context) error {
		for _, options := range selected {
			var err error
			for range listAttempts {
				if err = l.pages(ctx, kind, list, options); !apierrors.IsResourceExpired(err) {
					break
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func (l *lister) pages(ctx context.Context, kind string, list pager.ListPageFunc, options metav1.ListOptions) error {
	done := 0
	counted := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		page, err := list(ctx, o)
		if err == nil && l.progress != nil {
			n := meta.LenList(page)
			done, l.objects = done+n, l.objects+n
			l.progress(manifest.Progress{Source: strings.ToLower(kind) + "s", Done: int64(done), Objects: l.objects})
		}
		return page, err
	}
	pages := pager.ListPager{PageSize: pageSize, PageFn: counted}
	return pages.EachListItem(ctx, options, func(item runtime.Object) error {
		o, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		if custom, ok := item.(*unstructured.Unstructured); ok {
			o = &IdentityMapping{}
			if runtime.DefaultUnstructuredConverter.FromUnstructured(custom.Object, o) != nil {
				return errors.New("the answer is not a list of IAMIdentityMappings")
			}
		}
		l.cluster.add(o, func(path ...string) finding.Place {
			return finding.Place{Object: kind + " " + qualified(o.GetNamespace(), o.GetName()), Key: keyOf(path)}
		})
		return nil
	})
}

func (l *lister) awsAuth(ctx context.Context) error {
	m, err := l.client.CoreV1().ConfigMaps(kubeSystem).Get(ctx, awsAuthName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	l.cluster.AWSAuth = &ConfigMap{
		Place: finding.Place{Object: "ConfigMap " + kubeSystem + "/" + awsAuthName}, Data: m.Data, Changed: lastWritten(m),
	}
	return nil
}

// lastWritten returns the time of the last write of a ConfigMap; zero if unknown.
func lastWritten(m *corev1.ConfigMap) time.Time {
	var last time.Time
	for _, entry := range m.ManagedFields {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// identityMappings reads the custom resources, if their CustomResourceDefinition exists.
func (l *lister) identityMappings(ctx context.Context) error {
	resource := schema.GroupVersionResource{Group: groupMappings, Version: "v1alpha1", Resource: "iamidentitymappings"}
	err := l.each("IAMIdentityMapping", page(l.resources.Resource(resource).List))(ctx)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// openShift reads the API servers of OpenShift and their configuration, if no other was found.
func (l *lister) openShift(ctx context.Context) error {
	if len(l.cluster.pods) > 0 {
		return errNotNeeded
	}
	selected := metav1.ListOptions{LabelSelector: "app=" + openShiftNamespace}
	err := l.each("Pod", page(l.client.CoreV1().Pods(openShiftNamespace).List), selected)(ctx)
	if err == nil {
		err = l.openShiftConfigs(ctx)
	}
	if apierrors.IsForbidden(err) {
		return errNotNeeded
	}
	return err
}

// openShiftConfigs reads the configurations of the revisions of API servers, and the one of no revision.
func (l *lister) openShiftConfigs(ctx context.Context) error {
	names := map[string]bool{}
	for _, a := range l.cluster.pods {
		if a.Flags.has(flagOpenShift) {
			names["config"], names["config-"+a.Revision] = true, true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		m, err := l.client.CoreV1().ConfigMaps(openShiftNamespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		flags, err := openShiftFlags([]byte(m.Data["config.yaml"]))
		if err != nil {
			return fmt.Errorf("ConfigMap %s/%s: data.config.yaml: %w", openShiftNamespace, name, err)
		}
		l.cluster.APIServerConfigs = append(l.cluster.APIServerConfigs, APIServerConfig{
			Place: finding.Place{Object: "ConfigMap " + openShiftNamespace + "/" + name, Key: "data.config.yaml"}, Name: name, Flags: flags,
		})
	}
	return nil
}

func (l *lister) webhooks(ctx context.Context) error {
	l.cluster.complete()
	if !slices.ContainsFunc(l.cluster.APIServers, func(a APIServer) bool { return a.Unseen == "" && !a.nodeRestriction() }) {
		return errNotNeeded
	}
	return l.each("MutatingWebhookConfiguration", page(l.client.AdmissionregistrationV1().MutatingWebhookConfigurations().List))(ctx)
}

func rbacResources() []string {
	return []string{
		"clusterroles." + rbacv1.GroupName, "clusterrolebindings." + rbacv1.GroupName, "roles." + rbacv1.GroupName,
		"rolebindings." + rbacv1.GroupName,
	}
}
