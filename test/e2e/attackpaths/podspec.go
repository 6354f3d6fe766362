package attackpaths

// podSpec says which pod an attacker makes. It fulfills the level restricted of Pod Security
// unless it asks for more.
type podSpec struct {
	name, node, account string
	// token mounts a token of the account, secret a secret, and claim a claim.
	token         bool
	secret, claim string
	// volume is a persistent volume for which a controller makes the claim.
	volume     string
	privileged bool
	// hostPath mounts the root folder of the node, as root.
	hostPath bool
}

// object is the pod.
func (p podSpec) object() map[string]any {
	return map[string]any{"metadata": map[string]any{"name": p.name, "labels": p.labels()}, "spec": p.spec()}
}

// madeAs is the label of objects that the attacker makes.
const madeAs = "made-as"

// labels are unique, so that the pod of a workload is found by them.
func (p podSpec) labels() map[string]any { return map[string]any{madeAs: p.name} }

// template is the pod as the template of a workload.
func (p podSpec) template(restart string) map[string]any {
	spec := p.spec()
	spec["restartPolicy"] = restart
	return map[string]any{"metadata": map[string]any{"labels": p.labels()}, "spec": spec}
}

func (p podSpec) spec() map[string]any {
	var volumes, mounts []any
	mount := func(name string, source map[string]any) {
		source["name"] = name
		volumes = append(volumes, source)
		mounts = append(mounts, map[string]any{"name": name, "mountPath": "/" + name})
	}
	if p.token {
		token := map[string]any{"serviceAccountToken": map[string]any{"path": "token"}}
		mount("token", map[string]any{"projected": map[string]any{"sources": []any{token}}})
	}
	if p.secret != "" {
		mount("secret", map[string]any{"secret": map[string]any{"secretName": p.secret}})
	}
	if p.claim != "" {
		mount("claim", map[string]any{"persistentVolumeClaim": map[string]any{"claimName": p.claim}})
	}
	if p.volume != "" {
		mount("volume", map[string]any{"ephemeral": map[string]any{
			"volumeClaimTemplate": map[string]any{"spec": hostClaim(p.volume)["spec"]},
		}})
	}
	if p.hostPath {
		mount("host", map[string]any{"hostPath": map[string]any{"path": "/"}})
	}
	security := map[string]any{
		"runAsNonRoot": true, "runAsUser": 1000, "allowPrivilegeEscalation": false,
		"capabilities":   map[string]any{"drop": []string{"ALL"}},
		"seccompProfile": map[string]any{"type": "RuntimeDefault"},
	}
	if p.privileged {
		security = map[string]any{"privileged": true}
	}
	if p.hostPath {
		security = map[string]any{"runAsUser": 0}
	}
	container := map[string]any{"name": "c", "image": "i", "securityContext": security, "volumeMounts": mounts}
	spec := map[string]any{
		"automountServiceAccountToken":  false,
		"terminationGracePeriodSeconds": 0,
		"containers":                    []any{container},
		"volumes":                       volumes,
		"tolerations":                   []any{map[string]any{"operator": "Exists"}},
	}
	if p.node != "" {
		spec["nodeName"] = p.node
	}
	if p.account != "" {
		spec["serviceAccountName"] = p.account
	}
	return spec
}

// workloadObject is a workload of the pod.
func (p podSpec) workloadObject(r resource) map[string]any {
	selector := map[string]any{"matchLabels": p.labels()}
	spec := map[string]any{"selector": selector, "template": p.template("Always")}
	switch r {
	case deployments, replicaSets:
		spec["replicas"] = 1
	case statefulSets:
		spec["replicas"], spec["serviceName"] = 1, p.name
	case controllers:
		spec["replicas"], spec["selector"] = 1, p.labels()
	case jobs:
		spec = map[string]any{"template": p.template("Never")}
	case cronJobs:
		job := map[string]any{"spec": map[string]any{"template": p.template("Never")}}
		spec = map[string]any{"schedule": "0 0 1 1 *", "jobTemplate": job}
	}
	return map[string]any{"metadata": map[string]any{"name": p.name, "labels": p.labels()}, "spec": spec}
}
