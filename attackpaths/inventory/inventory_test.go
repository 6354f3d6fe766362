package inventory_test

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// podOf adds a pod with this spec, and metadata if given, and returns what is recorded of it.
func podOf(t *testing.T, spec string, meta ...metav1.ObjectMeta) *inventory.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	if len(meta) > 0 {
		pod.ObjectMeta = meta[0]
	}
	if err := yaml.UnmarshalStrict([]byte(spec), &pod.Spec); err != nil {
		t.Fatal(err)
	}
	i := inventory.New()
	i.Set(pod)
	return i.Pods()[0]
}

func TestEscapes(t *testing.T) {
	hostPath := func(path, mount string) string {
		return `{volumes: [{name: h, hostPath: {path: ` + path + `}}],
			containers: [{name: c, volumeMounts: [{name: h, mountPath: /h` + mount + `}]}]}`
	}
	for _, c := range []struct {
		rule, spec, means, dependsOn string
		effect                       inventory.Effect
	}{
		{rule: "an ordinary container", spec: `{containers: [{name: c}]}`},
		{
			rule:  "a privileged container",
			spec:  `{containers: [{name: c, securityContext: {privileged: true}}]}`,
			means: "container c is privileged",
		},
		{
			rule:  "a privileged init container",
			spec:  `{initContainers: [{name: i, securityContext: {privileged: true}}], containers: [{name: c}]}`,
			means: "container i is privileged",
		},
		{
			rule:  "a privileged ephemeral container",
			spec:  `{ephemeralContainers: [{name: e, securityContext: {privileged: true}}], containers: [{name: c}]}`,
			means: "container e is privileged",
		},
		{
			rule:  "a privileged container of another user",
			spec:  `{securityContext: {runAsUser: 1000}, containers: [{name: c, securityContext: {privileged: true}}]}`,
			means: "container c is privileged", dependsOn: "what a user other than root can do there",
		},
		{
			rule:  "the container's user before the pod's",
			spec:  `{securityContext: {runAsUser: 1000}, containers: [{name: c, securityContext: {privileged: true, runAsUser: 0}}]}`,
			means: "container c is privileged",
		},
		{
			rule:  "an image that must not run as root",
			spec:  `{containers: [{name: c, securityContext: {privileged: true, runAsNonRoot: true}}]}`,
			means: "container c is privileged", dependsOn: "whether the image runs as root",
		},
		{
			rule: "a powerful capability", spec: `{containers: [{name: c, securityContext: {capabilities: {add: [CAP_SYS_ADMIN]}}}]}`,
			means:     "container c has the capability SYS_ADMIN",
			dependsOn: "the container runtime's confinement (seccomp, AppArmor, SELinux)",
		},
		{rule: "a harmless capability", spec: `{containers: [{name: c, securityContext: {capabilities: {add: [NET_BIND_SERVICE]}}}]}`},
		{rule: "the host's root", spec: hostPath("/", ""), means: "container c mounts / of its node"},
		{
			rule:  "a folder below the host's configuration",
			spec:  hostPath("/etc/cron.d", ""),
			means: "container c mounts /etc/cron.d of its node",
		},
		{rule: "a folder above the kubelet's", spec: hostPath("/var/lib", ""), means: "container c mounts /var/lib of its node"},
		{rule: "a path that climbs", spec: hostPath("/tmp/../etc", ""), means: "container c mounts /etc of its node"},
		{
			rule: "logs", spec: hostPath("/var/log", ""), means: "container c mounts /var/log of its node",
			dependsOn: "whether the kubelet follows links there", effect: inventory.LinksLogs,
		},
		{rule: "logs, read only", spec: hostPath("/var/log", ", readOnly: true")},
		{rule: "logs through a prefix of a name", spec: hostPath("/etcetera", "")},
		{rule: "the host's programs, read only", spec: hostPath("/usr", ", readOnly: true")},
		{
			rule:  "the kubelet's folder, read only",
			spec:  hostPath("/var/lib/kubelet", ", readOnly: true"),
			means: "container c mounts /var/lib/kubelet of its node (read only)", effect: inventory.TakesCredential,
		},
		{
			rule:  "a socket, read only",
			spec:  hostPath("/run/containerd/containerd.sock", ", readOnly: true"),
			means: "container c mounts /run/containerd/containerd.sock of its node",
		},
		{rule: "a part of a volume", spec: hostPath("/var", ", subPath: cache")},
		{
			rule: "the kubelet's key", spec: hostPath("/var/lib/kubelet/pki", ""),
			means: "container c mounts /var/lib/kubelet/pki of its node",
		},
		{
			rule: "the kubelet's key, read only", spec: hostPath("/var/lib/kubelet/pki", ", readOnly: true"),
			means: "container c mounts /var/lib/kubelet/pki of its node (read only)", effect: inventory.TakesCredential,
		},
		{
			rule: "a part of a volume that a variable names, of data", spec: hostPath("/usr/share/zoneinfo", ", subPathExpr: $(X)"),
		},
		{
			rule:  "a privileged container in a user namespace",
			spec:  `{hostUsers: false, containers: [{name: c, securityContext: {privileged: true}}]}`,
			means: "container c is privileged", dependsOn: "what root in the pod's own user namespace can do there",
		},
		{
			rule:  "a process of a Windows node",
			spec:  `{securityContext: {windowsOptions: {hostProcess: true}}, hostNetwork: true, containers: [{name: c}]}`,
			means: "container c is a process of its node (hostProcess)",
		},
		{
			rule:  "a process of a Windows node, by its container",
			spec:  `{containers: [{name: c, securityContext: {windowsOptions: {hostProcess: true}}}]}`,
			means: "container c is a process of its node (hostProcess)",
		},
		{
			rule: "a part of a volume that a variable names", spec: hostPath("/var", ", subPathExpr: $(X)"),
			means: "container c mounts a folder below /var of its node", dependsOn: "which folder it is",
		},
		{rule: "a volume that no container mounts", spec: `{volumes: [{name: h, hostPath: {path: /}}], containers: [{name: c}]}`},
		{
			rule: "the processes of the node", spec: `{hostPID: true, containers: [{name: c}]}`,
			means:     "the pod sees the processes of its node (hostPID)",
			dependsOn: "the container runtime's confinement (seccomp, AppArmor, SELinux)",
		},
		{
			rule: "the network of the node", spec: `{hostNetwork: true, containers: [{name: c}]}`,
			means: "the pod is in the network of its node (hostNetwork)", dependsOn: "services that trust callers from the node itself",
		},
		{
			rule: "the certain way first", spec: `{hostNetwork: true, containers: [{name: c, securityContext: {privileged: true}}]}`,
			means: "container c is privileged",
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			got := podOf(t, c.spec).Escapes
			if c.means == "" {
				if len(got) > 0 {
					t.Fatalf("escapes are %+v, want none", got)
				}
				return
			}
			if len(got) == 0 || got[0].Means != c.means || got[0].DependsOn != c.dependsOn || got[0].Effect != c.effect {
				t.Errorf("escapes are %+v, want first %q (%s), effect %d", got, c.means, c.dependsOn, c.effect)
			}
		})
	}
}

func TestMounts(t *testing.T) {
	p := podOf(t, `
volumes:
- {name: a, secret: {secretName: db}}
- name: b
  projected: {sources: [{secret: {name: tls}}, {serviceAccountToken: {path: t}}, {serviceAccountToken: {path: v, audience: vault}}]}
containers:
- {name: c, env: [{name: X, valueFrom: {secretKeyRef: {name: key, key: k}}}], envFrom: [{secretRef: {name: db}}]}
imagePullSecrets: [{name: registry}]
`)
	if want := []string{"db", "key", "tls"}; !slices.Equal(p.Secrets, want) {
		t.Errorf("secrets are %q, want %q", p.Secrets, want)
	}
	if want := []string{"registry"}; !slices.Equal(p.PullSecrets, want) {
		t.Errorf("pull secrets are %q, want %q", p.PullSecrets, want)
	}
	if want := []string{"", "vault"}; !slices.Equal(p.Audiences, want) {
		t.Errorf("audiences are %q, want %q", p.Audiences, want)
	}
}

func TestWorkloads(t *testing.T) {
	yes := true
	owner := func(version, kind, name string) metav1.ObjectMeta {
		reference := metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, Controller: &yes}
		return metav1.ObjectMeta{Namespace: "shop", Name: "web", OwnerReferences: []metav1.OwnerReference{reference}}
	}
	ofDeployment := owner("apps/v1", "ReplicaSet", "web-5d4f")
	ofDeployment.Labels = map[string]string{"pod-template-hash": "5d4f"}
	for rule, c := range map[string]struct {
		meta metav1.ObjectMeta
		want string
	}{
		"no owner":               {metav1.ObjectMeta{Name: "web"}, " "},
		"a deployment":           {ofDeployment, "deployments.apps web"},
		"a replica set":          {owner("apps/v1", "ReplicaSet", "web"), "replicasets.apps web"},
		"a daemon set":           {owner("apps/v1", "DaemonSet", "agent"), "daemonsets.apps agent"},
		"a stateful set":         {owner("apps/v1", "StatefulSet", "db"), "statefulsets.apps db"},
		"a job":                  {owner("batch/v1", "Job", "once"), "jobs.batch once"},
		"a controller":           {owner("v1", "ReplicationController", "old"), "replicationcontrollers old"},
		"another group":          {owner("example.com/v1", "DaemonSet", "x"), " "},
		"an owner of other kind": {owner("v1", "Node", "n"), " "},
	} {
		if got := podOf(t, `{containers: [{name: c}]}`, c.meta).Workload.String(); got != c.want {
			t.Errorf("%s: %q, want %q", rule, got, c.want)
		}
	}
}

func TestControlPlanePods(t *testing.T) {
	mirror := map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	in := func(namespace, name, label string, static bool) metav1.ObjectMeta {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
		if key, value, ok := strings.Cut(label, "="); ok {
			meta.Labels = map[string]string{key: value}
		}
		if static {
			meta.Annotations = mirror
		}
		return meta
	}
	const (
		cluster  = "whether the component is one of this cluster"
		keyThere = "whether the keys of the control plane lie in the folder that the pod mounts"
		plain    = `{nodeName: CP-1, containers: [{name: c}]}`
	)
	keys := func(folder string) string {
		return `{volumes: [{name: k, hostPath: {path: ` + folder + `}}], containers: [{name: c, volumeMounts: [{name: k, mountPath: /k}]}]}`
	}
	of := func(container string) string { return `{containers: [{name: c, ` + container + `}]}` }
	shell := func(script string) string { return of(`command: [/bin/sh, -ec], args: ["` + script + `"]`) }
	none := in("kube-system", "x", "", false)
	for rule, c := range map[string]struct {
		meta                  metav1.ObjectMeta
		spec, want, dependsOn string
	}{
		"a static pod by name":            {in("kube-system", "etcd-cp-1", "", true), plain, "etcd", ""},
		"a static pod by kubeadm's label": {in("kube-system", "x", "component=kube-apiserver", true), plain, "kube-apiserver", ""},
		"a static pod by the label k8s-app": {
			in("kube-system", "x", "k8s-app=kube-apiserver", true), plain, "kube-apiserver", "",
		},
		"a static pod by a container":    {in("apiserver", "x", "", true), `{containers: [{name: kube-apiserver}]}`, "kube-apiserver", ""},
		"a static pod elsewhere":         {in("shop", "etcd-cp-1", "", true), plain, "etcd", ""},
		"not by the name of another pod": {in("kube-system", "etcd-cp-1", "", false), plain, "", ""},
		"a pod by its label":             {in("kube-system", "x", "k8s-app=kube-scheduler", false), plain, "kube-scheduler", ""},
		"etcd of kOps by its label":      {in("kube-system", "x", "k8s-app=etcd-manager-main", true), plain, "etcd", ""},
		"etcd of kOps by its name":       {in("kube-system", "etcd-manager-events-cp-1", "", true), plain, "etcd", ""},
		"not another pod of the node": {
			in("kube-system", "kube-apiserver-proxy-cp-1", "k8s-app=kube-apiserver-proxy", true), plain, "", "",
		},
		"not a pod of a node of another name": {in("kube-system", "etcd-cp-12", "", true), plain, "", ""},
		"not a backup of etcd of kOps":        {in("kube-system", "x", "k8s-app=etcd-manager-backup", false), plain, "", ""},
		"not by this label elsewhere":         {in("shop", "x", "k8s-app=etcd", false), plain, "", ""},
		"a pod by its command": {
			in("kube-system", "x", "", false), of(`command: [/usr/local/bin/kube-apiserver]`), "kube-apiserver", "",
		},
		"a pod by its arguments": {in("kube-system", "x", "", false), of(`args: [hyperkube, kube-scheduler]`), "kube-scheduler", ""},
		"a pod by its image": {
			in("kube-system", "x", "", false), of(`image: "example.com/kube-controller-manager:v1.37.1"`), "kube-controller-manager", "",
		},
		"an image with a digest":       {none, of(`image: "r.example.com:5000/kube-scheduler@sha256:aa"`), "kube-scheduler", ""},
		"an image of a platform":       {none, of(`image: "kube-apiserver-amd64:v1"`), "kube-apiserver", ""},
		"not an image of another name": {none, of(`image: "etcd-backup:1"`), "", ""},
		"not an image of an exporter":  {none, of(`image: "x/kube-controller-manager-metrics-exporter:1"`), "", ""},
		"not a client in the image of etcd": {
			none, of(`image: "etcd:3", command: [etcdctl, snapshot, save, /backup/etcd]`), "", "",
		},
		"etcd of an add-on, perhaps":             {none, of(`command: [/usr/bin/etcd]`), "etcd", cluster},
		"not a value of a flag":                  {none, of(`args: ["--source=/var/lib/etcd"]`), "", ""},
		"not a value of a flag in the next word": {none, of(`args: ["--prefix", "/registry/etcd"]`), "", ""},
		"not a value of a flag of a program":     {none, of(`command: [/agent, --component, kube-apiserver]`), "", ""},
		"not an argument of a program":           {none, of(`command: [/agent, backup, /var/lib/etcd]`), "", ""},
		"a program that another one with a log runs": {
			none, of(`command: [/go-runner, --log-file=/var/log/k, /usr/local/bin/kube-apiserver]`), "kube-apiserver", "",
		},
		"a program that an init runs":      {none, of(`command: [tini, -g, --, kube-scheduler, --v=2]`), "kube-scheduler", ""},
		"a program with variables":         {none, of(`command: [env, A=b, kube-scheduler]`), "kube-scheduler", ""},
		"a shell":                          {none, shell("exec /usr/local/bin/kube-apiserver --a=b 2>&1"), "kube-apiserver", ""},
		"a shell with variables":           {none, shell("GOGC=50 exec '/bin/kube-scheduler' --v=2"), "kube-scheduler", ""},
		"a shell with other commands":      {none, shell("mkfifo /p; (tee /l < /p &) ; exec kube-scheduler > /p"), "kube-scheduler", ""},
		"a shell with conditions":          {none, shell("if [ -f /x ]; then exec kube-scheduler; fi"), "kube-scheduler", ""},
		"a shell with lines":               {none, shell(`set -e\nexec \\\n  kube-scheduler`), "kube-scheduler", ""},
		"a shell with options":             {none, of(`command: [bash, -o, errexit, -c, kube-scheduler --v=2]`), "kube-scheduler", ""},
		"a shell in a shell":               {none, shell("exec sh -c 'kube-scheduler --v=2'"), "kube-scheduler", ""},
		"not an argument in a shell":       {none, shell("while ! pgrep etcd; do sleep 1; done"), "", ""},
		"not a text in a shell":            {none, shell("echo 'next; kube-apiserver'"), "", ""},
		"not a value of a flag in a shell": {none, shell("exec /agent --data /var/lib/etcd"), "", ""},
		"not a script":                     {none, of(`command: [sh, /scripts/check.sh, kube-apiserver]`), "", ""},
		"on the network of the node": {
			in("cp", "x", "", false), `{hostNetwork: true, containers: [{name: c, command: [etcd]}]}`, "etcd", "",
		},
		"perhaps of another cluster":       {in("tenant", "x", "", false), of(`command: [kube-apiserver]`), "kube-apiserver", cluster},
		"a pod with folders for keys":      {in("shop", "x", "", false), keys("/etc/kubernetes/pki"), "", keyThere},
		"a pod with folders of k3s":        {in("shop", "x", "", false), keys("/var/lib/rancher/k3s/server/tls"), "", keyThere},
		"not a pod with certificates only": {in("shop", "x", "", false), keys("/etc/kubernetes/pki/ca.crt"), "", ""},
		"not a pod with all of the node":   {in("shop", "x", "", false), keys("/"), "", ""},
	} {
		if p := podOf(t, c.spec, c.meta); p.ControlPlane != c.want || p.ControlPlaneDependsOn != c.dependsOn {
			t.Errorf("%s: %q (%s), want %q (%s)", rule, p.ControlPlane, p.ControlPlaneDependsOn, c.want, c.dependsOn)
		}
	}
}

// Of folders of the host for which the table has no row, nothing is said but that they are not followed.
func TestHostPathsNotFollowed(t *testing.T) {
	p := podOf(t, `
volumes:
- {name: a, hostPath: {path: /data}}
- {name: b, hostPath: {path: /etc}}
- {name: c, hostPath: {path: /mnt}}
- {name: d, hostPath: {path: /srv/other}}
containers:
- name: c
  volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /b}, {name: c, mountPath: /c, subPath: disk, readOnly: true}]
`)
	if want := []string{"/data", "/mnt/disk (read only)"}; !slices.Equal(p.HostPathsNotFollowed, want) {
		t.Errorf("not followed are %q, want %q", p.HostPathsNotFollowed, want)
	}
}

func TestPlacement(t *testing.T) {
	node := &inventory.Node{Name: "n1", Labels: map[string]string{"pool.node-restriction.kubernetes.io/name": "web", "disk": "ssd"}}
	tainted := &inventory.Node{Name: "n2", Taints: []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}}
	preferred := &inventory.Node{Name: "n3", Taints: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectPreferNoSchedule}}}
	own := func(label string) bool { return label == "disk" }
	affinity := func(expression string) string {
		return `{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [` + expression + `]}}}}`
	}
	inPool := func(requirement string) string {
		return `{matchExpressions: [{key: pool.node-restriction.kubernetes.io/name, ` + requirement + `}]}`
	}
	for _, c := range []struct {
		rule, spec string
		node       *inventory.Node
		want       bool
	}{
		{"nothing demanded", `{}`, node, true},
		{"a label that the node has", `{nodeSelector: {pool.node-restriction.kubernetes.io/name: web}}`, node, true},
		{"another value", `{nodeSelector: {pool.node-restriction.kubernetes.io/name: db}}`, node, false},
		{"a label without a value that the node lacks", `{nodeSelector: {other.node-restriction.kubernetes.io/name: ""}}`, node, false},
		{"a label that the node may give itself", `{nodeSelector: {disk: hdd}}`, node, true},
		{"an affinity that holds", affinity(inPool(`operator: In, values: [web]`)), node, true},
		{"an affinity that does not hold", affinity(inPool(`operator: DoesNotExist`)), node, false},
		{
			"an affinity of which one term holds",
			affinity(`{matchExpressions: [{key: x, operator: Exists}]}, {matchExpressions: [{key: disk, operator: In, values: [hdd]}]}`),
			node, true,
		},
		{"a term without requirements", affinity(`{}`), node, false},
		{"a name", affinity(`{matchFields: [{key: metadata.name, operator: In, values: [n2]}]}`), node, false},
		{"a taint", `{}`, tainted, false},
		{"a taint that is tolerated", `{tolerations: [{key: dedicated, operator: Exists}]}`, tainted, true},
		{"a taint that only prefers", `{}`, preferred, true},
	} {
		if got := podOf(t, c.spec).Placement.Allows(c.node, own); got != c.want {
			t.Errorf("%s: %v, want %v", c.rule, got, c.want)
		}
	}
	if !podOf(t, affinity(`{matchFields: [{key: metadata.name, operator: In, values: [n2]}]}`)).Placement.Pinned() {
		t.Error("a pod for one node is not pinned")
	}
}

// Secrets are recorded without their data.
func TestSecrets(t *testing.T) {
	i := inventory.New()
	i.Set(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "t", Annotations: map[string]string{corev1.ServiceAccountNameKey: "web"}},
		Type:       corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte("x")},
	})
	want := inventory.Secret{
		Name: inventory.Name{Namespace: "shop", Name: "t"},
		Type: corev1.SecretTypeServiceAccountToken, ServiceAccount: "web",
	}
	if got := i.Secrets(); len(got) != 1 || got[0] != want {
		t.Errorf("secrets are %+v, want %+v", got, want)
	}
}

func TestAdmissionCovers(t *testing.T) {
	rule := func(operation, group, resource string) admissionv1.RuleWithOperations {
		return admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.OperationType(operation)},
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
		}
	}
	pods := inventory.Write{Operation: admissionv1.Create, Resource: "pods", Namespaced: true}
	exec := inventory.Write{Operation: admissionv1.Connect, Resource: "pods", Subresource: "exec", Namespaced: true}
	for _, c := range []struct {
		rule  string
		of    admissionv1.RuleWithOperations
		write inventory.Write
		want  bool
	}{
		{"the resource", rule("CREATE", "", "pods"), pods, true},
		{"any operation", rule("*", "", "pods"), pods, true},
		{"another operation", rule("DELETE", "", "pods"), pods, false},
		{"another group", rule("CREATE", "apps", "pods"), pods, false},
		{"any resource", rule("CREATE", "*", "*"), pods, true},
		{"any resource has no subresources", rule("CONNECT", "*", "*"), exec, false},
		{"any subresource", rule("CONNECT", "", "pods/*"), exec, true},
		{"everything", rule("CONNECT", "", "*/*"), exec, true},
		{"the subresource of anything", rule("CONNECT", "", "*/exec"), exec, true},
	} {
		i := inventory.New()
		i.Set(&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "w"}, Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "a.b.c", Rules: []admissionv1.RuleWithOperations{c.of},
				NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "skip", Operator: metav1.LabelSelectorOpDoesNotExist},
				}},
			}},
		})
		a := i.Admission()[0]
		if got := a.Covers(c.write, nil); got != c.want {
			t.Errorf("%s: %v, want %v", c.rule, got, c.want)
		}
		if a.Covers(c.write, map[string]string{"skip": ""}) {
			t.Errorf("%s: covers a namespace that is not selected", c.rule)
		}
	}
}

// TestWebhooksThatLeaveTheirConfiguration are no longer asked.
func TestWebhooksThatLeaveTheirConfiguration(t *testing.T) {
	i := inventory.New()
	configured := func(names ...string) {
		c := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		for _, name := range names {
			c.Webhooks = append(c.Webhooks, admissionv1.MutatingWebhook{Name: name})
		}
		i.Set(c)
	}
	for _, names := range [][]string{{"a", "b"}, {"b"}, nil} {
		configured(names...)
		var got []string
		for _, a := range i.Admission() {
			got = append(got, a.Webhook)
		}
		if !slices.Equal(got, names) {
			t.Errorf("webhooks %v, want %v", got, names)
		}
		if all := i.Names("MutatingWebhookConfiguration"); !slices.Equal(all, []inventory.Name{{Name: "c"}}) {
			t.Errorf("configurations %v", all)
		}
	}
}

func TestAdmissionPolicies(t *testing.T) {
	rules := func(resource string, names ...string) []admissionv1.NamedRuleWithOperations {
		return []admissionv1.NamedRuleWithOperations{{
			ResourceNames: names,
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
			},
		}}
	}
	policy := func(match admissionv1.MatchResources) *admissionv1.ValidatingAdmissionPolicy {
		p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		p.Spec.MatchConstraints = &match
		return p
	}
	binding := func(
		match *admissionv1.MatchResources, actions ...admissionv1.ValidationAction,
	) *admissionv1.ValidatingAdmissionPolicyBinding {
		b := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
		b.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "p", MatchResources: match, ValidationActions: actions}
		return b
	}
	pods := policy(admissionv1.MatchResources{ResourceRules: rules("pods")})
	selected := &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}}}
	services := &admissionv1.MatchResources{ResourceRules: rules("services")}
	excluding := func(names ...string) *admissionv1.MatchResources {
		return &admissionv1.MatchResources{ExcludeResourceRules: rules("pods", names...)}
	}
	for _, c := range []struct {
		rule    string
		policy  *admissionv1.ValidatingAdmissionPolicy
		binding *admissionv1.ValidatingAdmissionPolicyBinding
		want    bool
	}{
		{"a policy with a binding that denies", pods, binding(nil, admissionv1.Deny), true},
		{"a policy with a binding that warns", pods, binding(nil, admissionv1.Warn, admissionv1.Audit), false},
		{"a policy without a binding", pods, nil, false},
		{"a binding without a policy", nil, binding(nil, admissionv1.Deny), false},
		{"a binding for another namespace", pods, binding(selected, admissionv1.Deny), false},
		{"a binding for another resource", pods, binding(services, admissionv1.Deny), false},
		{"a binding that excludes", pods, binding(excluding(), admissionv1.Deny), false},
		{"a binding that excludes some names", pods, binding(excluding("x"), admissionv1.Deny), true},
	} {
		i := inventory.New()
		if c.binding != nil {
			i.Set(c.binding)
		}
		if c.policy != nil {
			i.Set(c.policy)
		}
		covers := func() bool {
			return slices.ContainsFunc(i.Admission(), func(a inventory.Admission) bool {
				return a.Covers(
					inventory.Write{Operation: admissionv1.Create, Resource: "pods", Namespaced: true},
					map[string]string{"team": "db"},
				)
			})
		}
		if covers() != c.want {
			t.Errorf("%s: %v, want %v", c.rule, covers(), c.want)
		}
		i.Delete("ValidatingAdmissionPolicyBinding", "", "b")
		if covers() {
			t.Errorf("%s: it counts after its binding was deleted", c.rule)
		}
	}
}

// TestPoliciesKeepWhatTheyDemand: what decides about a request is kept with each binding.
func TestPoliciesKeepWhatTheyDemand(t *testing.T) {
	p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	p.Spec.MatchConstraints = &admissionv1.MatchResources{}
	p.Spec.Validations = []admissionv1.Validation{{Expression: "false"}}
	b := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	b.Spec.PolicyName, b.Spec.ValidationActions = "p", []admissionv1.ValidationAction{admissionv1.Deny}
	i := inventory.New()
	i.Set(p)
	i.Set(b)
	all := i.Admission()
	if len(all) != 1 || all[0].Policy == nil || all[0].Binding == nil {
		t.Fatalf("%+v, want one policy with its binding", all)
	}
	if got := all[0].Policy.Validations[0].Expression; got != "false" || all[0].Binding.PolicyName != "p" {
		t.Errorf("the policy demands %q and its binding is of %q", got, all[0].Binding.PolicyName)
	}
}

// TestRulesForOtherVersionsExcludeNothing: the objects that attackers write are of version v1.
func TestRulesForOtherVersionsExcludeNothing(t *testing.T) {
	for version, want := range map[string]bool{"v1": false, "*": false, "v1beta1": true} {
		i := inventory.New()
		rule := func(version string) []admissionv1.NamedRuleWithOperations {
			return []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{"*"},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{version}, Resources: []string{"pods"}},
			}}}
		}
		p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		p.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: rule("*"), ExcludeResourceRules: rule(version)}
		b := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
		b.Spec.PolicyName, b.Spec.ValidationActions = "p", []admissionv1.ValidationAction{admissionv1.Deny}
		i.Set(p)
		i.Set(b)
		w := inventory.Write{Operation: admissionv1.Create, Resource: "pods", Namespaced: true}
		if got := i.Admission()[0].Covers(w, nil); got != want {
			t.Errorf("a policy that excludes version %s covers pods: %v, want %v", version, got, want)
		}
	}
}
