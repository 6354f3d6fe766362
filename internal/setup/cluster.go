package setup

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

const (
	// registry is the ConfigMap that has an entry for each node where the server is installed. It is also the lock that
	// lets one node change at a time.
	registry          = "node-authorizer-setup"
	controlPlaneLabel = "node-role.kubernetes.io/control-plane"
)

// Member is the entry of a control plane node.
type Member struct {
	Mode Mode `json:"mode"`
	Port int  `json:"port"`
	// Authority is the authority of the server's certificate, PEM.
	Authority string `json:"authority"`
	// Containment is true if the server enforces NodeScopes and Quarantines.
	Containment bool `json:"containment,omitempty"`
	// Changing is true from before the first change of a node until its kube-apiserver is ready again.
	Changing bool `json:"changing,omitempty"`
}

// Cluster is the cluster of a node, as the kube-apiserver of this node serves it.
type Cluster struct {
	Config  *rest.Config
	objects dynamic.Interface
	core    kubernetes.Interface
}

// Connect returns the cluster at an address, as a user who may do everything.
func Connect(config *rest.Config, address string) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.Host, config.APIPath = "https://"+address, ""
	config.ServerName = "kubernetes" // kubeadm's certificates have this name
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	c := &Cluster{Config: config}
	var err error
	if c.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	c.core, err = kubernetes.NewForConfig(config)
	return c, err
}

// Members returns the entries of all nodes.
func (c *Cluster) Members(ctx context.Context) (map[string]Member, error) {
	members, _, err := c.members(ctx)
	return members, err
}

func (c *Cluster) members(ctx context.Context) (map[string]Member, *corev1.ConfigMap, error) {
	stored, err := c.core.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, registry, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return map[string]Member{}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: registry, Namespace: metav1.NamespaceSystem, Labels: map[string]string{managed: managedBy},
		}}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read which nodes have the server: %w", err)
	}
	members := map[string]Member{}
	for name, text := range stored.Data {
		var m Member
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return nil, nil, fmt.Errorf("the entry %s of the config map kube-system/%s is not what setup wrote; correct it", name, registry)
		}
		members[name] = m
	}
	return members, stored, nil
}

// update changes the entries, unless somebody else changes them at the same time.
func (c *Cluster) update(ctx context.Context, change func(map[string]Member) error) error {
	members, stored, err := c.members(ctx)
	if err != nil {
		return err
	}
	if err := change(members); err != nil {
		return err
	}
	stored.Data = map[string]string{}
	for name, m := range members {
		text, err := json.Marshal(m)
		if err != nil {
			return err
		}
		stored.Data[name] = string(text)
	}
	stores := c.core.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	switch {
	case stored.ResourceVersion == "" && len(members) > 0:
		_, err = stores.Create(ctx, stored, metav1.CreateOptions{})
	case stored.ResourceVersion == "":
	case len(members) == 0:
		err = stores.Delete(ctx, registry, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{ResourceVersion: &stored.ResourceVersion},
		})
	default:
		_, err = stores.Update(ctx, stored, metav1.UpdateOptions{})
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("setup runs on another control plane node at the same time: wait until it is done, and try again")
	}
	return err
}

// begin notes that a node changes, unless refusal refuses it. It returns the former entry, which is empty if there was none.
func (c *Cluster) begin(ctx context.Context, node string, to Member) (former Member, err error) {
	nodes, err := c.controlPlane(ctx)
	if err != nil {
		return former, err
	}
	to.Changing = true
	err = c.update(ctx, func(members map[string]Member) error {
		former = members[node]
		if err := c.refusal(ctx, nodes, members, node, to); err != nil {
			return err
		}
		members[node] = to
		return nil
	})
	return former, err
}

// Check returns why [Node.Apply] would not begin. It changes nothing.
func (n *Node) Check(ctx context.Context, p *Plan) error {
	_, err := n.Cluster.startTime(ctx)
	nodes, listErr := n.Cluster.controlPlane(ctx)
	members, membersErr := n.Cluster.Members(ctx)
	if err := errors.Join(err, listErr, membersErr); err != nil {
		return fmt.Errorf("it is not known whether this can be applied: %w", err)
	}
	if err := n.Cluster.refusal(ctx, nodes, members, n.Name, p.member()); err != nil {
		return fmt.Errorf("this cannot be applied now: %w", err)
	}
	return nil
}

func (c *Cluster) controlPlane(ctx context.Context) (nodes []string, err error) {
	list, err := c.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: controlPlaneLabel})
	if err != nil {
		return nil, fmt.Errorf("list the control plane nodes: %w", err)
	}
	for i := range list.Items {
		nodes = append(nodes, list.Items[i].Name)
	}
	return nodes, nil
}

// refusal returns why a node cannot change, for example that another one is not healthy. It removes entries of nodes that do
// not exist.
func (c *Cluster) refusal(ctx context.Context, nodes []string, members map[string]Member, node string, to Member) error {
	if !slices.Contains(nodes, node) {
		return fmt.Errorf("%s is not among the control plane nodes %s: name this node with --node-name", node,
			strings.Join(nodes, ", "))
	}
	maps.DeleteFunc(members, func(name string, _ Member) bool { return !slices.Contains(nodes, name) })
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name == node {
			continue
		}
		if err := c.healthy(ctx, name, members[name]); err != nil {
			return fmt.Errorf("%w; one control plane node is changed at a time: correct it, or run setup or setup undo on %s first",
				err, name)
		}
		if port := members[name].Port; port != to.Port {
			return fmt.Errorf("the server of %s has the port %d: use --port=%d, because all share one webhook", name, port, port)
		}
	}
	former := members[node]
	if former.Mode != "" && former.Port != to.Port {
		return fmt.Errorf("the server of this node has the port %d: run setup undo before you give it another one", former.Port)
	}
	if to.Mode == Replace && former.Mode != Replace {
		for _, name := range nodes {
			if members[name].Mode == "" || name == node && former.Changing {
				return fmt.Errorf("the mode replace needs a server on each control plane node, because in it a write of a node "+
					"fails where no server answers, and %s has none that is ready: "+
					"run setup kubeadm with --mode=observe or --mode=beside there first", name)
			}
		}
	}
	return containmentFits(members, node, to)
}

// containmentFits returns an error if a server would have to restart with NodeScopes and Quarantines while a node has the mode
// replace, in which a write of a node fails where no server answers.
func containmentFits(members map[string]Member, node string, to Member) error {
	replaced := to.Mode == Replace
	for _, m := range members {
		replaced = replaced || m.Mode == Replace
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		differs := members[name].Mode != "" && members[name].Containment != to.Containment
		if differs && replaced && (name == node || to.Mode == Replace) {
			return fmt.Errorf("--containment restarts the server, and a write of a node fails meanwhile in the mode replace; "+
				"the server of %s has another --containment: run setup kubeadm --mode=beside on each control plane node, "+
				"then again with --containment, then with --mode=replace", name)
		}
	}
	return nil
}

// healthy returns an error if a node is being changed, or its static pods are not ready.
func (c *Cluster) healthy(ctx context.Context, node string, m Member) error {
	if m.Changing {
		return fmt.Errorf("setup has not finished on the control plane node %s", node)
	}
	for _, name := range []string{"kube-apiserver-" + node, folder + "-" + node} {
		pod, err := c.core.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("the control plane node %s: %w", node, err)
		}
		if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			return fmt.Errorf("the pod kube-system/%s of the control plane node %s is not ready", name, node)
		}
	}
	return nil
}

// webhookFor returns the webhook configuration for the nodes. A write fails without an answer only if one of them has no
// NodeRestriction.
func (o *Options) webhookFor(members map[string]Member) (*unstructured.Unstructured, error) {
	var bundle strings.Builder
	strongest := Observe
	for _, name := range slices.Sorted(maps.Keys(members)) {
		m := members[name]
		bundle.WriteString(m.Authority)
		if slices.Index(Modes(), string(m.Mode)) > slices.Index(Modes(), string(strongest)) {
			strongest = m.Mode
		}
	}
	text := strings.Replace(o.text("static-pod/webhooks/noderestriction.yaml"), "caBundle: CA_BUNDLE",
		"caBundle: "+base64.StdEncoding.EncodeToString([]byte(bundle.String())), 1)
	if strongest != Replace {
		text = strings.Replace(text, "failurePolicy: Fail", "failurePolicy: Ignore", 1)
	}
	if strongest == Observe {
		text = strings.NewReplacer("/admit\n", "/observe/admit\n", "timeoutSeconds: 3", "timeoutSeconds: 1").Replace(text)
	}
	objects, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("decode the webhook configuration: %w", err)
	}
	return objects[0], nil
}

// settle makes the webhook configuration fit the nodes. Without nodes it removes all objects of setup, and returns which
// custom resources stay because there are objects of them.
func (c *Cluster) settle(ctx context.Context, o *Options, members map[string]Member) (kept []string, err error) {
	webhook, err := o.webhookFor(members)
	if err != nil {
		return nil, err
	}
	if len(members) > 0 {
		_, _, err := c.change(ctx, webhook, nil)
		return nil, err
	}
	all, err := o.objects(true)
	if err != nil {
		return nil, err
	}
	for _, object := range slices.Backward(append(all, webhook)) {
		if used, err := c.inUse(ctx, object); err != nil || used {
			if err != nil {
				return nil, err
			}
			kept = append(kept, object.GetName())
			continue
		}
		live, err := c.of(object).Get(ctx, object.GetName(), metav1.GetOptions{})
		if err == nil && live.GetLabels()[managed] == managedBy {
			err = c.of(object).Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("remove %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return kept, nil
}

func (c *Cluster) inUse(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	if object.GetKind() != "CustomResourceDefinition" {
		return false, nil
	}
	resource, group, _ := strings.Cut(object.GetName(), ".")
	list, err := c.objects.Resource(schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: resource}).List(ctx,
		metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && len(list.Items) > 0, err
}

func (c *Cluster) of(object *unstructured.Unstructured) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	if namespace := object.GetNamespace(); namespace != "" {
		return c.objects.Resource(resource).Namespace(namespace)
	}
	return c.objects.Resource(resource)
}

// change applies an object, perhaps as a dry run. It returns the object before, nil if there was none, and after the change.
func (c *Cluster) change(
	ctx context.Context, object *unstructured.Unstructured, dryRun []string,
) (before, after *unstructured.Unstructured, err error) {
	before, err = c.of(object).Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		before, err = nil, nil
	}
	if err == nil && before != nil && before.GetLabels()[managed] != managedBy {
		err = fmt.Errorf("it was not made by setup: delete it, or go on by hand, as docs/guides/install.md says")
	}
	if err == nil {
		options := metav1.ApplyOptions{FieldManager: managedBy, Force: true, DryRun: dryRun}
		after, err = c.of(object).Apply(ctx, object.GetName(), object, options)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return before, after, nil
}

// startTime returns when kube-apiserver started, and an error while it is not ready. The restart after a change of its
// manifest shows by another time.
func (c *Cluster) startTime(ctx context.Context) (string, error) {
	if err := c.core.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return "", fmt.Errorf("kube-apiserver is not ready: %w", err)
	}
	text, err := c.core.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("read kube-apiserver's metrics: %w", err)
	}
	return startIn(text)
}

func startIn(metrics []byte) (string, error) {
	for line := range bytes.Lines(metrics) {
		if time, found := bytes.CutPrefix(line, []byte("process_start_time_seconds ")); found {
			return string(bytes.TrimSpace(time)), nil
		}
	}
	return "", errors.New("the metrics lack process_start_time_seconds")
}

// asksAbout asks kube-apiserver whether a node may read itself, which only its authorizers of nodes allow.
func (c *Cluster) asksAbout(ctx context.Context, node string) error {
	review, err := c.core.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: nodeidentity.UserPrefix + node, Groups: []string{nodeidentity.Group},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes", Name: node},
		},
	}, metav1.CreateOptions{})
	if err == nil && !review.Status.Allowed {
		err = fmt.Errorf("no authorizer of kube-apiserver allows a node to read itself: %s", review.Status.Reason)
	}
	return err
}
