package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/internal/manifest"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// pageSize is the number of objects in a page of a list.
const pageSize = 500

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
	l := &lister{
		client: client, host: config.Host, progress: progress,
		cluster: &Cluster{Origin: "cluster " + config.Host, Live: true, RBAC: rbac.NewPolicy(), RBACKnown: true},
	}
	l.ownCredential(config)
	return l.cluster, l.list(ctx)
}

// lister fills a cluster from an API server.
type lister struct {
	client   kubernetes.Interface
	host     string
	progress func(manifest.Progress)
	cluster  *Cluster
	objects  int
	// readable is the number of resources that could be read.
	readable int
}

// listing is a resource, named as in kubectl, with the function that reads it.
type listing struct {
	resource string
	rbac     bool
	read     func(*lister, context.Context) error
}

func listings() []listing {
	return []listing{
		{"configmaps", false, (*lister).awsAuth},
		{resourceMappings, false, (*lister).identityMappings},
		{"nodes", false, (*lister).nodes},
		{resourceRequests, false, (*lister).requests},
		{"clusterroles." + rbacv1.GroupName, true, (*lister).clusterRoles},
		{"clusterrolebindings." + rbacv1.GroupName, true, (*lister).clusterRoleBindings},
		{"roles." + rbacv1.GroupName, true, (*lister).roles},
		{"rolebindings." + rbacv1.GroupName, true, (*lister).roleBindings},
		{"pods", false, (*lister).apiServers},
		{"pods in " + openShiftNamespace, false, (*lister).openShift},
		{resourceWebhooks, false, (*lister).webhooks},
	}
}

const resourceMappings = "iamidentitymappings." + groupMappings

func (l *lister) list(ctx context.Context) error {
	if err := l.version(ctx); err != nil {
		return err
	}
	for _, what := range listings() {
		err := what.read(l, ctx)
		switch {
		case errors.Is(err, errNotNeeded):
		case apierrors.IsForbidden(err):
			l.cluster.Missing = append(l.cluster.Missing, Missing{
				Resource: what.resource,
				Reason:   notAllowed(err),
				Remedy:   fmt.Sprintf("bind a role with the verbs get and list on %s to the user", what.resource),
			})
			l.cluster.RBACKnown = l.cluster.RBACKnown && !what.rbac
		case err != nil:
			return source.ExplainFailure(ctx, l.host, "read "+what.resource+" of", err)
		default:
			l.readable++
		}
	}
	if l.readable == 0 {
		return fmt.Errorf("nothing of cluster %s may be read with these credentials: %s", l.host, l.cluster.Missing[0])
	}
	l.cluster.sort()
	return nil
}

// notAllowed returns why a resource may not be read. Some responses have no message.
func notAllowed(err error) string {
	if message := err.Error(); message != "" && message != "unknown" {
		return "not allowed to read them: " + message
	}
	return "not allowed to read them"
}

func (l *lister) version(ctx context.Context) error {
	version, err := l.client.Discovery().ServerVersion()
	if err != nil {
		return source.ExplainFailure(ctx, l.host, "ask for the version of", err)
	}
	if minor, err := kubeversion.Parse(source.BehavesAs(version)); err == nil {
		l.cluster.Version = minor
	}
	return nil
}

// ownCredential adds the credential plugin of the kubeconfig in use.
func (l *lister) ownCredential(config *rest.Config) {
	exec := config.ExecProvider
	if exec == nil {
		return
	}
	e := execution{Command: exec.Command, Args: exec.Args}
	for _, variable := range exec.Env {
		e.Env = append(e.Env, environmentVariable{Name: variable.Name, Value: variable.Value})
	}
	if c, ok := e.credential("", finding.Place{Object: "kubeconfig", Key: "user.exec"}); ok {
		c.Own = true
		l.cluster.Credentials = append(l.cluster.Credentials, c)
	}
}

// pages reads all pages of a list. If a page expires, which happens after some minutes, it starts
// the list again.
func pages[T any](ctx context.Context, l *lister, resource string, opts metav1.ListOptions,
	list func(context.Context, metav1.ListOptions) ([]T, string, error), take func(*T),
) error {
	const attempts = 3
	var err error
	for range attempts {
		var all []T
		opts.Limit, opts.Continue = pageSize, ""
		for more := true; more; more = opts.Continue != "" {
			var items []T
			if items, opts.Continue, err = list(ctx, opts); err != nil {
				break
			}
			all = append(all, items...)
			if l.progress != nil {
				l.progress(manifest.Progress{Source: resource, Done: int64(len(all)), Objects: l.objects + len(all)})
			}
		}
		if apierrors.IsResourceExpired(err) {
			continue
		}
		if err != nil {
			return err
		}
		l.objects += len(all)
		for i := range all {
			take(&all[i])
		}
		return nil
	}
	return err
}

func (l *lister) nodes(ctx context.Context) error {
	return pages(ctx, l, "nodes", metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) ([]Node, string, error) {
		list, err := l.client.CoreV1().Nodes().List(ctx, o)
		if err != nil {
			return nil, "", err
		}
		nodes := make([]Node, len(list.Items)) // only the needed fields: the page is not kept
		for i := range list.Items {
			at := finding.Place{Object: "Node " + list.Items[i].Name}
			nodes[i] = newNode(&list.Items[i], at)
			nodes[i].server = rancherNode(&list.Items[i], at)
		}
		return nodes, list.Continue, nil
	}, func(n *Node) { l.cluster.Nodes = append(l.cluster.Nodes, *n) })
}

// requests lists certificate requests by signer, so that other requests are not read.
func (l *lister) requests(ctx context.Context) error {
	for _, signer := range []string{certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName} {
		err := pages(ctx, l, "certificatesigningrequests", metav1.ListOptions{FieldSelector: "spec.signerName=" + signer},
			func(ctx context.Context, o metav1.ListOptions) ([]CertificateRequest, string, error) {
				list, err := l.client.CertificatesV1().CertificateSigningRequests().List(ctx, o)
				if err != nil {
					return nil, "", err
				}
				var requests []CertificateRequest
				for i := range list.Items {
					csr := &list.Items[i]
					if csr.Spec.SignerName == signer {
						requests = append(requests, newCertificateRequest(csr, finding.Place{
							Object: "CertificateSigningRequest " + csr.Name,
						}))
					}
				}
				return requests, list.Continue, nil
			}, func(r *CertificateRequest) { l.cluster.Requests = append(l.cluster.Requests, *r) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) clusterRoles(ctx context.Context) error {
	return pages(ctx, l, "clusterroles", metav1.ListOptions{}, func(
		ctx context.Context, o metav1.ListOptions,
	) ([]rbacv1.ClusterRole, string, error) {
		list, err := l.client.RbacV1().ClusterRoles().List(ctx, o)
		if err != nil {
			return nil, "", err
		}
		return list.Items, list.Continue, nil
	}, l.cluster.RBAC.SetClusterRole)
}

func (l *lister) roles(ctx context.Context) error {
	return pages(ctx, l, "roles", metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) ([]rbacv1.Role, string, error) {
		list, err := l.client.RbacV1().Roles("").List(ctx, o)
		if err != nil {
			return nil, "", err
		}
		return list.Items, list.Continue, nil
	}, l.cluster.RBAC.SetRole)
}

func (l *lister) clusterRoleBindings(ctx context.Context) error {
	return pages(ctx, l, "clusterrolebindings", metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (
		[]rbacv1.ClusterRoleBinding, string, error,
	) {
		list, err := l.client.RbacV1().ClusterRoleBindings().List(ctx, o)
		if err != nil {
			return nil, "", err
		}
		return list.Items, list.Continue, nil
	}, func(b *rbacv1.ClusterRoleBinding) {
		l.cluster.addClusterRoleBinding(b, finding.Place{Object: "ClusterRoleBinding " + b.Name})
	})
}

func (l *lister) roleBindings(ctx context.Context) error {
	return pages(ctx, l, "rolebindings", metav1.ListOptions{}, func(
		ctx context.Context, o metav1.ListOptions,
	) ([]rbacv1.RoleBinding, string, error) {
		list, err := l.client.RbacV1().RoleBindings("").List(ctx, o)
		if err != nil {
			return nil, "", err
		}
		return list.Items, list.Continue, nil
	}, func(b *rbacv1.RoleBinding) {
		l.cluster.addRoleBinding(b, finding.Place{Object: "RoleBinding " + b.Namespace + "/" + b.Name})
	})
}

// apiServers reads API servers that run as pods. Those of a cloud's control plane do not.
func (l *lister) apiServers(ctx context.Context) error {
	for _, selector := range []string{"component=" + apiServerProgram, "k8s-app=" + apiServerProgram, "k8s-app=" + IAMAuthenticator} {
		err := pages(ctx, l, "pods", metav1.ListOptions{LabelSelector: selector}, func(
			ctx context.Context, o metav1.ListOptions,
		) ([]corev1.Pod, string, error) {
			list, err := l.client.CoreV1().Pods(awsAuthNamespace).List(ctx, o)
			if err != nil {
				return nil, "", err
			}
			return list.Items, list.Continue, nil
		}, func(pod *corev1.Pod) {
			l.addPod(pod)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) addPod(pod *corev1.Pod) {
	l.cluster.addContainers(&pod.ObjectMeta, &pod.Spec, func(i int) finding.Place {
		return finding.Place{Object: "Pod " + pod.Namespace + "/" + pod.Name, Key: keyOf([]string{"spec", "containers", fmt.Sprint(i)})}
	})
}

func (l *lister) awsAuth(ctx context.Context) error {
	m, err := l.client.CoreV1().ConfigMaps(awsAuthNamespace).Get(ctx, awsAuthName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	l.cluster.AWSAuth = &ConfigMap{
		Place: finding.Place{Object: "ConfigMap " + awsAuthNamespace + "/" + awsAuthName}, Data: m.Data, Changed: lastWritten(m),
	}
	return nil
}

// identityMappings reads the custom resources, if their CustomResourceDefinition exists.
func (l *lister) identityMappings(ctx context.Context) error {
	err := pages(ctx, l, "iamidentitymappings", metav1.ListOptions{}, func(
		ctx context.Context, o metav1.ListOptions,
	) ([]identityMapping, string, error) {
		text, err := l.client.CoreV1().RESTClient().Get().AbsPath("/apis/"+groupMappings+"/v1alpha1/iamidentitymappings").
			Param("limit", fmt.Sprint(o.Limit)).Param("continue", o.Continue).
			SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(ctx)
		if err != nil {
			return nil, "", err
		}
		var list struct {
			Metadata metav1.ListMeta   `json:"metadata"`
			Items    []identityMapping `json:"items"`
		}
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, "", errors.New("the answer is not a list of IAMIdentityMappings")
		}
		return list.Items, list.Metadata.Continue, nil
	}, func(m *identityMapping) {
		l.cluster.IdentityMappings = append(l.cluster.IdentityMappings, m.mapping(finding.Place{Object: "IAMIdentityMapping " + m.Name}))
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
