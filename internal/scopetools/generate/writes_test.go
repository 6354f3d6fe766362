package generate_test

import (
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

func pod(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	for _, f := range change {
		f(p)
	}
	return p
}

func mirror(p *corev1.Pod) {
	yes := true
	p.Annotations = map[string]string{"kubernetes.io/config.mirror": "x"}
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Node", Name: p.Spec.NodeName, UID: "uid-" + "a", Controller: &yes,
	}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
}

func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, f := range change {
		f(n)
	}
	return n
}

func tainted(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
}

func labelled(n *corev1.Node) { n.Labels = map[string]string{"node-restriction.kubernetes.io/x": "y"} }

func thing(name string) runtime.Object {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"nodeName": "a"}}}
	o.SetName(name)
	return o
}

// token is a TokenRequest that is bound to an object.
func token(kind, name, uid string) *authenticationv1.TokenRequest {
	r := &authenticationv1.TokenRequest{}
	if kind != "" {
		r.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: kind, Name: name, UID: "uid-" + "web"}
		if uid == "" {
			r.Spec.BoundObjectRef.UID = ""
		}
	}
	return r
}

// write is a write with the token of node a: "UPDATE pods/status shop/web".
func write(text string, objects ...runtime.Object) *noderestriction.Request {
	parts := strings.Fields(text)
	w := &noderestriction.Request{
		User: account, Groups: []string{"system:serviceaccounts"}, Operation: noderestriction.Operation(parts[0]), Version: "v1",
		Extra: map[string][]string{nodeidentity.ExtraNode: {"a"}, nodeidentity.ExtraNodeUID: {"uid-a"}},
	}
	resource, sub, _ := strings.Cut(parts[1], "/")
	w.Resource, w.Group, _ = strings.Cut(resource, ".")
	w.Subresource = sub
	if len(parts) > 2 {
		w.Name = parts[2]
		if namespace, name, both := strings.Cut(parts[2], "/"); both {
			w.Namespace, w.Name = namespace, name
		}
	}
	switch {
	case w.Operation == noderestriction.Delete && len(objects) > 0:
		w.OldObject = objects[0]
	case len(objects) > 0:
		w.Object = objects[0]
	}
	if len(objects) > 1 {
		w.OldObject = objects[1]
	}
	return w
}

func with(w *noderestriction.Request, extra map[string][]string) *noderestriction.Request {
	w.Extra = extra
	return w
}

func slice(node string) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice-" + node},
		Spec:       resourcev1.ResourceSliceSpec{NodeName: &node},
	}
}

func signing(signer string) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: signer},
	}
}

func certificate(node string) *certificatesv1.PodCertificateRequest {
	r := &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r"}}
	r.Spec.NodeName = "a"
	if node != "a" {
		r.Spec.NodeName = "b"
	}
	return r
}

// writes are writes of all kinds.
func writes() []*noderestriction.Request {
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	csi := func(name string) *storagev1.CSINode {
		return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	labelledPod := func(p *corev1.Pod) { p.Labels = map[string]string{"k": "v"} }
	claims := func(p *corev1.Pod) { p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "c"}} }
	withSecret := func(p *corev1.Pod) {
		mirror(p)
		p.Spec.Volumes = []corev1.Volume{{
			Name:         "v",
			VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}},
		}}
	}
	withEnv := func(p *corev1.Pod) {
		mirror(p)
		p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}
	}
	withAccount := func(p *corev1.Pod) { mirror(p); p.Spec.ServiceAccountName = "web" }
	foreign := func(p *corev1.Pod) { mirror(p); p.OwnerReferences[0].UID = "uid-b" }
	var all []*noderestriction.Request
	for _, name := range []string{"a", "b"} {
		all = append(all,
			write("CREATE things.x "+name, thing(name)), write("CREATE things.x", thing(name)), write("UPDATE things.x "+name,
				thing(name), thing(name)),
			write("DELETE things.x "+name, thing(name)), write("UPDATE things.x/status "+name, thing(name), thing(name)),
			write("CREATE things.x n/"+name, thing(name)), write("CONNECT things.x/exec "+name, thing(name)),
			write("CREATE nodes "+name, node(name)), write("CREATE nodes "+name, node(name, labelled)), write("UPDATE nodes "+name,
				node(name), node(name)),
			write("UPDATE nodes "+name, node(name, tainted), node(name)), write("UPDATE nodes/status "+name, node(name, labelled),
				node(name)),
			write("UPDATE nodes/status "+name, node(name), node(name)), write("DELETE nodes "+name, node(name)),
			write("CONNECT nodes/proxy "+name, &corev1.NodeProxyOptions{}),
			write("CREATE leases.coordination.k8s.io kube-node-lease/"+name, lease(name)),
			write("CREATE leases.coordination.k8s.io shop/"+name, lease(name)),
			write("UPDATE leases.coordination.k8s.io kube-node-lease/"+name, lease(name), lease(name)),
			write("DELETE leases.coordination.k8s.io kube-node-lease/"+name, lease(name)),
			write("CREATE csinodes.storage.k8s.io "+name, csi(name)), write("UPDATE csinodes.storage.k8s.io "+name, csi(name), csi(name)),
			write("DELETE csinodes.storage.k8s.io "+name, csi(name)), write("UPDATE csinodes.storage.k8s.io/status "+name, csi(name),
				csi(name)),
			write("CREATE resourceslices.resource.k8s.io slice-"+name, slice(name)),
			write("DELETE resourceslices.resource.k8s.io slice-"+name, slice(name)),
			write("UPDATE resourceslices.resource.k8s.io slice-"+name, slice(name), slice(name)),
			write("CREATE podcertificaterequests.certificates.k8s.io shop/r", certificate(name)),
		)
	}
	for name, of := range map[string]string{"web": "a", "other": "b", "new": "a"} {
		p := pod(name, of)
		for _, resource := range []string{"endpoints.y.org", "endpoints.y.org/status", "endpoints", "pods.y.org"} {
			all = append(all,
				write("CREATE "+resource+" shop/"+name, thing(name)), write("UPDATE "+resource+" shop/"+name, thing(name), thing(name)),
				write("DELETE "+resource+" shop/"+name, thing(name)), write("CREATE "+resource+" shop/", thing(name)),
				write("DELETE "+resource+" shop/", thing(name)), write("CREATE "+resource+" "+name, thing(name)),
				write("CREATE "+resource+" n/"+name, thing(name)))
		}
		all = append(all,
			write("CREATE pods shop/"+name, p), write("CREATE pods shop/"+name, pod(name, of, mirror)), write("CREATE pods shop/"+name,
				pod(name, of, withSecret)),
			write("CREATE pods shop/"+name, pod(name, of, withEnv)), write("CREATE pods shop/"+name, pod(name, of, withAccount)),
			write("CREATE pods shop/"+name, pod(name, of, foreign)))
		if name == "new" {
			continue // it does not exist
		}
		all = append(all,
			write("UPDATE pods shop/"+name, p, p), write("DELETE pods shop/"+name, p), write("UPDATE pods/status shop/"+name, p, p),
			write("UPDATE pods/status shop/"+name, pod(name, of, labelledPod), p), write("UPDATE pods/status shop/"+name, pod(name, of,
				claims), p),
			write("UPDATE pods/ephemeralcontainers shop/"+name, p, p), write("UPDATE pods/resize shop/"+name, p, p),
			write("CREATE pods/eviction shop/"+name, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}),
			write("CREATE pods/binding shop/"+name, &corev1.Binding{}), write("CONNECT pods/exec shop/"+name, &corev1.PodExecOptions{}),
			write("CONNECT pods/portforward shop/"+name, &corev1.PodPortForwardOptions{}),
			write("CREATE serviceaccounts/token shop/web", token("Pod", name, "uid")))
	}
	return append(all,
		write("DELETE pods shop/", pod("web", "a")), write("DELETE pods shop/", pod("other", "b")), write("DELETE things.x", thing("a")),
		write("DELETE leases.coordination.k8s.io kube-node-lease/", lease("a")),
		write("CREATE serviceaccounts/token shop/web", token("", "", "")), write("CREATE serviceaccounts/token shop/web",
			token("Secret", "s", "uid")),
		write("CREATE serviceaccounts/token shop/web", token("Pod", "web", "")), write("CREATE secrets shop/s", &corev1.Secret{}),
		write("CREATE certificatesigningrequests.certificates.k8s.io r", signing("example.com/x")),
		write("CREATE certificatesigningrequests.certificates.k8s.io r", signing("kubernetes.io/kube-apiserver-client-kubelet")),
		write("CREATE events shop/e", &corev1.Event{}), write("UPDATE events shop/e", &corev1.Event{}, &corev1.Event{}),
		write("DELETE events shop/e", &corev1.Event{}), write("CREATE configmaps shop/c", &corev1.ConfigMap{}),
		write("UPDATE configmaps shop/c", &corev1.ConfigMap{}, &corev1.ConfigMap{}), write("DELETE configmaps shop/c", &corev1.ConfigMap{}),
	)
}
